"""The chart library in the repository is the published one: its files, its version, its license."""

import json
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "sublet/pages/vendor/uplot"
NOTE = json.loads((FOLDER / "VERSION.json").read_text())


def test_every_file_is_the_published_one() -> None:
    """To renew it: `npm pack uplot@VERSION` checks the archive; its three files and their sums come here."""
    there = {path.name: sha256(path.read_bytes()).hexdigest() for path in FOLDER.iterdir()}
    del there["VERSION.json"]
    assert there == NOTE["sha256"]


def test_version_and_license_are_those_of_the_files() -> None:
    assert f"(v{NOTE['version']})" in (FOLDER / "uPlot.iife.min.js").read_text()[:200]
    assert (FOLDER / "LICENSE").read_text().startswith("The MIT License")
    assert NOTE["license"] == "MIT"


def test_the_library_can_stand_inside_a_script_element() -> None:
    for name in ("uPlot.iife.min.js", "../../page.js"):
        text = (FOLDER / name).read_text()
        assert "</script" not in text
        assert "<!--" not in text
