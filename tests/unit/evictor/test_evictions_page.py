"""docs/evictions.md: every guard is on it, every command is one, every outcome is in the test that is named for it."""

import re
import shlex
from typing import get_args

import pytest
import typer
from printed_page import ROOT

from services.evictor.core.arbiter.guards import Guard
from shared.contracts.eviction_phases import PHASES
from shared.core.evictions.audit import Fault, Kind
from shared.core.evictions.intents import PHASE_OF_STEP
from shared.core.scan import modules_in
from sublet import cli, commands

TEXT = (ROOT / "docs/evictions.md").read_text()


def table(head: str) -> list[list[str]]:
    """The cells of the rows below a row that begins so."""
    lines = TEXT.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {head} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def names(head: str) -> list[str]:
    return [row[0].strip("`") for row in table(head)]


def test_every_guard_is_explained_once_and_none_that_is_not_there() -> None:
    assert sorted(names("guard")) == sorted(get_args(Guard))
    assert all(len(row) == 3 and row[1] and row[2] for row in table("guard"))


def test_every_end_and_every_kind_of_fault_is_explained() -> None:
    assert {*names("phase"), "intended", "created", "succeeded"} == set(PHASES)
    assert sorted(names("fault")) == sorted(get_args(Kind))
    assert Fault.__annotations__["kind"] == Kind


def test_the_picture_has_every_step_and_its_event() -> None:
    picture = TEXT.partition("```\n")[2].partition("```")[0]
    for step in ("intended", "requested", "accepted", "succeeded"):
        assert re.search(rf"\b{step}\b", picture)
        assert step not in PHASE_OF_STEP or re.search(rf"{PHASE_OF_STEP[step]}\s+◀─+ {step}", picture)


@pytest.mark.parametrize("row", table("what"), ids=lambda row: row[0][:40])
def test_every_outcome_is_in_the_test_that_proves_it(row: list[str]) -> None:
    _what, outcome, proof = row
    paths = re.findall(r"\]\(\.\./(tests/[\w/]+\.py)\)", proof)
    assert paths
    text = "".join((ROOT / path).read_text() for path in paths)
    for said in re.findall(r"`([^`]+)`", outcome):
        assert said.removeprefix("sublet ") in text, f"{said!r} is not in {proof}"


def test_every_command_is_one_of_sublets_with_these_options() -> None:
    main = typer.main.get_command(cli.build(modules_in(commands)))
    lines = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
    inline = [said for said in re.findall(r"`(sublet [a-z ]+)`", TEXT) if not said.endswith("up")]
    assert lines
    for line in [*lines, *inline]:
        _sublet, *words = shlex.split(line)
        command = main
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        command.make_context(line, words, resilient_parsing=line in inline)
