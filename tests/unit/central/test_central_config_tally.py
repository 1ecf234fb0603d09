"""What became of a revision: who works with it, who refuses it and why, and what a hostile node can make of that."""

import json

import pytest
from pydantic import ValidationError

from services.central.core.heartbeats.config_tally import LISTED_NODES, LISTED_REFUSALS, tally
from services.central.core.heartbeats.readiness import Heartbeat, Ledger
from shared.contracts.readiness import WHY_CHARACTERS, ConfigRefusal

WHY = "evictor.cooling_s = -1: a number from 0 to 3600"


def node(revision: int | None, *refused: tuple[str, int, str]) -> Heartbeat:
    refusals = tuple((service, ConfigRefusal.of(at, why)) for service, at, why in refused)
    return Heartbeat(0.0, True, (), revision=revision, refusals=refusals)


def test_nodes_are_counted_by_what_they_say_of_the_newest_revision() -> None:
    ledger: Ledger = {f"n{i}": node(12) for i in range(41)}
    ledger |= {"bad": node(11, ("evictor", 12, WHY)), "old": node(None), "slow": node(11), "newer": node(13)}
    seen = tally(ledger, 12)
    assert seen.counts() == {"applied": 42, "refused": 1, "behind": 2}
    assert list(seen.refusals()) == [{"service": "evictor", "revision": 12, "why": WHY, "nodes": 1, "such_as": ["bad"]}]


def test_a_refusal_counts_however_new_the_nodes_other_entries_are() -> None:
    assert tally({"n1": node(99, ("qrm", 12, WHY))}, 12).counts() == {"applied": 0, "refused": 1, "behind": 0}


def test_one_reason_of_many_nodes_is_one_row_with_a_few_names() -> None:
    (row,) = tally({f"n{i:03}": node(1, ("qrm", 2, WHY)) for i in range(500)}, 2).refusals()
    assert (row["nodes"], row["such_as"]) == (500, [f"n{i:03}" for i in range(LISTED_NODES)])


def test_nodes_that_make_words_up_do_not_make_the_answer_large() -> None:
    made_up = {f"n{i}": node(1, *((s, i, f"{i}" + "\U0001f4a5" * WHY_CHARACTERS) for s in "abcde")) for i in range(500)}
    rows = list(tally(made_up, 2).refusals())
    assert len(rows) == LISTED_REFUSALS
    assert len(json.dumps(rows)) < 64 * 1024


@pytest.mark.parametrize("fields", [{"revision": -1, "why": ""}, {"revision": 1, "why": "x" * (WHY_CHARACTERS + 1)}])
def test_a_refusal_out_of_bounds_is_no_refusal(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ConfigRefusal.model_validate(fields)
