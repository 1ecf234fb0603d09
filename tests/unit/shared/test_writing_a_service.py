"""docs/writing-a-service.md: what it prints works as printed, in a copy of the tree."""

import json
import re
import shlex
from pathlib import Path

import pytest
from printed_page import ROOT, copy_of_tree, run

PAGE = (ROOT / "docs/writing-a-service.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
COPIED = ("services", "shared", "sublet", "tests/unit/shared", "docs", "deploy", "pyproject.toml")
PLANS = "import sublet.node as n; print([plan.name for plan in n.PLANS])"
READY = "from services.reporter.settings import ReporterSettings as R; print(R().services)"


def walk(tree: Path) -> dict[str, str]:
    """Write and run what the page prints, from top to bottom; the output of every command."""
    told: dict[str, str] = {}
    for kind, text in BLOCKS:
        if kind == "python":
            head, _, body = text.partition("\n")
            path = tree / head.removeprefix("# ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)
        elif kind == "toml":
            with (tree / "pyproject.toml").open("a") as file:
                file.write(f"\n{text}")
        else:
            told |= {line: run(tree, shlex.split(line)) for line in text.splitlines()}
    return told


@pytest.mark.timeout(300)
def test_a_service_is_a_folder_and_an_entry(tmp_path: Path) -> None:
    tree = copy_of_tree(tmp_path, COPIED)
    told = walk(tree)
    (contracts,) = (output for line, output in told.items() if "lint-imports" in line)
    assert "idle: each room imports only what stands below it KEPT" in contracts
    (tested,) = (output for line, output in told.items() if "pytest" in line)
    assert re.search(r"^[1-9]\d* passed", tested.splitlines()[-1]), tested
    assert "idle" in run(tree, [".venv/bin/python", "-c", PLANS])
    assert "idle" in run(tree, [".venv/bin/python", "-c", READY])
    schema = json.loads((tree / "deploy/k8s/chart/values.schema.json").read_text())
    assert all("idle" in schema["properties"][part]["properties"] for part in ("settings", "config"))
    assert '"idle"' in (tree / "deploy/k8s/chart/templates/central/config.yaml").read_text()
    assert "SUBLET_IDLE__SAMPLES" in (tree / "docs/settings.md").read_text()


def test_every_block_is_of_a_kind_that_is_tried() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sh", "python", "toml"}
