"""Every worked case of every kind, through the door that users ask at."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from sublet.whatif import REFUSAL_FIELDS, answer, kinds

FOLDER = Path(__file__).parents[2] / "cases"
CASES = [json.loads(line) for file in sorted(FOLDER.glob("*.jsonl")) for line in file.read_text().splitlines()]
KNOWN = kinds()


def same(wanted: Any, found: Any) -> bool:
    """Numbers with a relative tolerance of 1e-6, of objects only what is wanted."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return math.isclose(wanted, found, rel_tol=1e-6)
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and same(value, found[key]) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(same, wanted, found))
    return bool(wanted == found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_worked_case_is_answered_as_printed(case: Any) -> None:
    found = answer(KNOWN, case["kind"], case["inputs"])
    assert same(case["outputs"], found), found


def test_every_kind_has_a_worked_case() -> None:
    assert {case["kind"] for case in CASES} == set(KNOWN)


@pytest.mark.parametrize("kind", KNOWN)
def test_every_kind_lists_all_its_outputs(kind: Any) -> None:
    case = next(case for case in CASES if case["kind"] == kind)
    listed = set(KNOWN[kind].outputs.model_fields) - set(REFUSAL_FIELDS)
    assert listed <= set(answer(KNOWN, kind, case["inputs"]))
