"""The page of kinds of nodes: it names tests that there are, and tells the length of each target of the Makefile."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/kubernetes-kinds.md").read_text()
KINDS, LENGTHS = PAGE.split("## How long the targets take")


def targets() -> list[str]:
    """What `make` can be asked for, in the order of the Makefile's list."""
    (listed,) = re.findall(r"(?m)^\.PHONY: (.*)$", (ROOT / "Makefile").read_text())
    return str(listed).split()


def test_every_target_has_a_row_of_lengths_and_no_other_is_told() -> None:
    told = [
        name for row in re.findall(r"(?m)^\| (`make .*?) \|", LENGTHS) for name in re.findall(r"make ([a-z-]+)", row)
    ]
    assert sorted(told) == sorted(targets())


def test_every_test_that_the_page_names_is_there() -> None:
    stories = {path.stem for folder in ("kubernetes", "vm") for path in (ROOT / "tests" / folder).glob("test_*.py")}
    assert set(re.findall(r"`(test_\w+)`", KINDS)) <= stories
