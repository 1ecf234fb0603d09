"""docs/writing-a-policy.md: what it prints works as printed, in a copy of the tree."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from printed_page import ROOT, copy_of_tree, run

from services.advisor.registry import known_policies
from shared.settings import raw_settings

PAGE = (ROOT / "docs/writing-a-policy.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
COPIED = ("services", "shared", "sublet", "tests/unit/advisor", "examples", "pyproject.toml")
BEFORE_WHEEL, WHEEL = PAGE.split("## Ship it")
RUN = re.compile(r"^(?P<env>(?:SUBLET_\w+=\S+ )*)sudo -E \.venv/bin/sublet up$")
CHOOSE = "import json, sys; from services.advisor.settings import choose; c = choose(json.load(sys.stdin)['advisor']); "


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_tree(tmp_path_factory.mktemp("tree"), COPIED)


def chosen(tree: Path, section: Mapping[str, Any]) -> list[Any]:
    """The policy and its settings that a section selects."""
    show = CHOOSE + "print(json.dumps([c.policy.name, c.policy_settings.model_dump(mode='json'), c.problems]))"
    told: list[Any] = json.loads(run(tree, [".venv/bin/python", "-c", show], json.dumps(section)))
    return told


def commands(part: str) -> Iterator[str]:
    for block in re.findall(r"```sh\n(.*?)```", part, re.DOTALL):
        yield from block.strip().splitlines()


def walk(tree: Path, part: str) -> dict[str, str]:
    """Write and run what a part of the page prints, from top to bottom; the output of every command."""
    told: dict[str, str] = {}
    for kind, text in re.findall(r"```(\w+)\n(.*?)```", part, re.DOTALL):
        if kind == "python":
            head, _, body = text.partition("\n")
            (tree / head.removeprefix("# ")).write_text(body)
        elif kind == "sh":
            told |= {line: run(tree, shlex.split(line)) for line in text.splitlines() if not RUN.match(line)}
    return told


def rows(output: str) -> list[str]:
    """The first words of a table's rows."""
    return [line.split()[0] for line in output.splitlines() if line.strip()]


@pytest.mark.timeout(300)
def test_from_the_template_to_a_policy_that_was_tested_compared_and_selected(tree: Path) -> None:
    told = walk(tree, BEFORE_WHEEL)
    replays = [rows(output) for line, output in told.items() if "sublet replay" in line]
    assert all({"canonical", "halfway"} <= set(row) for row in replays)
    assert "halfway:kept_ratio=0.2" in replays[-1]
    (tested,) = (output for line, output in told.items() if "pytest" in line)
    assert re.search(r"^[1-9]\d* passed", tested.splitlines()[-1]), tested

    (settings,) = (yaml.safe_load(text) for kind, text in BLOCKS if kind == "yaml")
    assert chosen(tree, settings) == ["halfway", {"mode": "enforce", "kept_ratio": 0.3}, []]
    runs = [RUN.match(line) for line in commands(BEFORE_WHEEL) if line.endswith("sublet up")]
    environments = [dict(item.split("=") for item in found["env"].split()) for found in runs if found]
    modes = [chosen(tree, raw_settings(env=env))[1]["mode"] for env in environments]
    assert modes == ["observe", "enforce"]


@pytest.mark.timeout(300)
def test_a_wheel_registers_its_policy(tree: Path) -> None:
    told = walk(tree, WHEEL)
    (replayed,) = (output for line, output in told.items() if "sublet replay" in line)
    assert {"canonical", "asked:part=0.5"} <= set(rows(replayed))
    section = {"advisor": {"policy": "asked"}}
    assert chosen(tree, section) == ["asked", {"mode": "enforce", "part": 1.0}, []]


def test_the_entry_point_on_the_page_is_that_of_the_example() -> None:
    (printed,) = (tomllib.loads(text) for kind, text in BLOCKS if kind == "toml")
    project = tomllib.loads((ROOT / "examples/policy-wheel/pyproject.toml").read_text())
    assert printed["project"]["entry-points"] == project["project"]["entry-points"]


def test_every_block_is_of_a_kind_that_is_tried() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sh", "python", "yaml", "toml"}
    assert "halfway" not in known_policies()
