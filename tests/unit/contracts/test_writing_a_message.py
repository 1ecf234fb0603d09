"""docs/writing-a-message.md: what it prints works as printed, in a copy of the tree."""

import json
import re
import shlex
from pathlib import Path

import pytest
from printed_page import ROOT, copy_of_tree, run

from shared.contracts.deploy.files import written

PAGE = (ROOT / "docs/writing-a-message.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
COPIED = ("services", "shared", "sublet", "tests/unit/contracts", "docs/schemas", "deploy", "pyproject.toml")


def walk(tree: Path) -> dict[str, str]:
    """Write and run what the page prints, from top to bottom; the output of every command."""
    told: dict[str, str] = {}
    for kind, text in BLOCKS:
        if kind == "python":
            head, _, body = text.partition("\n")
            (tree / head.removeprefix("# ")).write_text(body)
        else:
            told |= {line: run(tree, shlex.split(line)) for line in text.splitlines()}
    return told


@pytest.mark.timeout(300)
def test_a_message_is_a_model_and_a_row(tmp_path: Path) -> None:
    tree = copy_of_tree(tmp_path, COPIED)
    told = walk(tree)
    channels = json.loads((tree / "docs/schemas/asyncapi.json").read_text())["channels"]
    assert channels["Power"]["address"] == "sublet.node.v1.power.{node}"
    assert told[".venv/bin/python power_on_the_bus.py"] == "power/1 210.5\n"
    (tested,) = (output for line, output in told.items() if "pytest" in line)
    assert re.search(r"^[1-9]\d* passed", tested.splitlines()[-1]), tested
    for path, text in written(ROOT).items():
        assert (tree / path.relative_to(ROOT)).read_text() == text


def test_every_block_is_of_a_kind_that_is_tried() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sh", "python"}
