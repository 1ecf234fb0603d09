"""docs/writing-a-source.md: what it prints works as printed, in a copy of the tree."""

import re
import shlex
from pathlib import Path

import pytest
from printed_page import ROOT, copy_of_tree, run

from services.metrics.registry import TEMPLATE, known_sources

PAGE = (ROOT / "docs/writing-a-source.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
COPIED = ("services", "shared", "sublet", "tests/unit/metrics", "tests/trees", "pyproject.toml")
UP = "sudo -E .venv/bin/sublet up"


@pytest.mark.timeout(300)
def test_from_the_template_to_a_source_that_was_tested(tmp_path: Path) -> None:
    tree = copy_of_tree(tmp_path, COPIED)
    told: list[tuple[str, str]] = []
    for kind, text in BLOCKS:
        if kind == "python":
            head, _, body = text.partition("\n")
            (tree / head.removeprefix("# ")).write_text(body)
        else:
            told += [(line, run(tree, shlex.split(line))) for line in text.splitlines() if line != UP]
    tested = [output.splitlines()[-1] for line, output in told if "pytest" in line]
    assert len(tested) == 3
    assert all(re.match(r"[1-9]\d* passed", last) for last in tested), tested


def test_every_block_is_of_a_kind_that_is_tried() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sh", "python"}
    assert "swap" not in known_sources()


def test_the_template_is_there_to_be_copied_and_is_not_read() -> None:
    assert (ROOT / f"services/metrics/sources/{TEMPLATE}.py").is_file()
    assert TEMPLATE not in known_sources()
