"""Rooms: how many modules a folder holds, and how many lines a module."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MOST_MODULES, MOST_LINES = 12, 400
PLUGINS = {
    "services/advisor/policies",
    "services/evictor/plugins",
    "services/metrics/sources",
    "services/reporter/fields",
    "sublet/commands",
}
"""One file each, and no other edit: as many as there are."""


def modules() -> list[Path]:
    """All Python files of the repository."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git clone")
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def test_no_folder_of_the_product_holds_more_than_one_can_overlook() -> None:
    product = [path.relative_to(ROOT) for path in modules() if path.name != "__init__.py"]
    found = Counter(str(path.parent) for path in product if path.parts[0] != "tests")
    wide = {folder: count for folder, count in found.items() if count > MOST_MODULES and folder not in PLUGINS}
    assert wide == {}


def test_no_module_is_too_long() -> None:
    assert [path for path in modules() if len(path.read_text().splitlines()) > MOST_LINES] == []
