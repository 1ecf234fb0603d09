"""docs/writing-an-eviction-plugin.md: what it prints works as printed, in a copy of the tree."""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from printed_page import ROOT, copy_of_tree, run

from services.evictor.registry import known_plugins
from shared.settings import raw_settings

PAGE = (ROOT / "docs/writing-an-eviction-plugin.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
COPIED = ("services", "shared", "sublet", "tests/unit/evictor", "examples/plugin-wheel", "pyproject.toml")
BEFORE_WHEEL, WHEEL = PAGE.split("## Ship it")
RUN = re.compile(r"^(?P<env>(?:SUBLET_\w+=\S+ )*)sudo -E \.venv/bin/sublet up$")
READ = """import json, sys
from services.evictor.settings import read
found = read(json.load(sys.stdin))[1]
print(json.dumps({name: c.settings.model_dump(mode="json") for name, c in found.items()}))"""
DISK_STALL = "disk-stall-eviction-plugin"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_tree(tmp_path_factory.mktemp("tree"), COPIED)


def plugins(tree: Path, section: dict[str, Any]) -> dict[str, Any]:
    """The enabled plugins of a section, with their settings."""
    told: dict[str, Any] = json.loads(run(tree, [".venv/bin/python", "-c", READ], json.dumps(section)))
    return told


def walk(tree: Path, part: str) -> list[tuple[str, str]]:
    """Write and run what a part of the page prints, from top to bottom; the output of every command, in order."""
    told = []
    for kind, text in re.findall(r"```(\w+)\n(.*?)```", part, re.DOTALL):
        if kind == "python":
            head, _, body = text.partition("\n")
            (tree / head.removeprefix("# ")).write_text(body)
        elif kind == "sh":
            told += [(line, run(tree, shlex.split(line))) for line in text.splitlines() if not RUN.match(line)]
    return told


@pytest.mark.timeout(300)
def test_from_the_template_to_a_plugin_that_was_tested_and_switched_on(tree: Path) -> None:
    told = walk(tree, BEFORE_WHEEL)
    tested = [output.splitlines()[-1] for line, output in told if "pytest" in line]
    assert len(tested) == 3
    assert all(re.match(r"[1-9]\d* passed", last) for last in tested), tested

    (section,) = (yaml.safe_load(text) for kind, text in BLOCKS if kind == "yaml")
    restless = plugins(tree, section["evictor"])["restless-eviction-plugin"]
    assert (restless["tasks_per_cpu"], restless["mode"]) == (4.0, "enforce")
    lines = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
    runs = [found["env"] for line in lines if (found := RUN.match(line))]
    environments = [dict(item.split("=") for item in env.split()) for env in runs]
    seen = [plugins(tree, raw_settings(env=env)["evictor"])["restless-eviction-plugin"] for env in environments]
    assert [found["mode"] for found in seen] == ["observe", "dry-run"]


@pytest.mark.timeout(300)
def test_a_wheel_registers_its_plugin_and_is_silent_until_it_has_settings(tree: Path) -> None:
    walk(tree, WHEEL)
    assert DISK_STALL not in plugins(tree, {})
    found = plugins(tree, {"plugins": {"disk_stall": {"stalled_percent": 60}}})
    assert found[DISK_STALL]["stalled_percent"] == 60


def test_the_entry_point_on_the_page_is_that_of_the_example() -> None:
    (printed,) = (tomllib.loads(text) for kind, text in BLOCKS if kind == "toml")
    project = tomllib.loads((ROOT / "examples/plugin-wheel/pyproject.toml").read_text())
    assert printed["project"]["entry-points"] == project["project"]["entry-points"]


def test_every_block_is_of_a_kind_that_is_tried() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sh", "python", "yaml", "toml"}
    assert "restless" not in known_plugins()
