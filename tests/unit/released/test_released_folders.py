"""What each version writes is kept: whole for the version under way, and for ever once it is released."""

import json
from pathlib import Path
from typing import Any

import pytest
from released_folders import CHANGELOG, NEWEST, RELEASED, is_released, sums, sums_file, write_folder, write_newest

from shared.contracts.bus import schemas

VERSIONS = sorted(path for path in RELEASED.iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_a_folder_has_the_files_that_were_kept(folder: Path) -> None:
    assert sums(folder) == sums_file(folder).read_text(), f"{folder} was changed by hand: take it from git"


def test_what_is_written_today_is_kept(tmp_path: Path) -> None:
    """After a change of a message, a file, a kind or a setting: `make schemas`; of a released version, a new one."""
    write_folder(tmp_path / "now")
    assert sums(tmp_path / "now") == sums_file(NEWEST).read_text(), "run make schemas"


def test_every_version_of_the_changelog_has_a_folder() -> None:
    headings = [line.split("]")[0].removeprefix("## [") for line in CHANGELOG.read_text().splitlines() if
                line.startswith("## [")]  # fmt: skip
    assert {*headings} - {"Unreleased"} <= {folder.name for folder in VERSIONS}
    assert NEWEST in VERSIONS


def test_a_released_version_is_not_written_again(tmp_path: Path) -> None:
    newest, changelog = tmp_path / "0.1.0", "## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n"
    write_newest(newest)
    write_newest(newest, changelog)  # nothing has changed since
    kept = sums(newest)
    sums_file(newest).write_text(kept.replace(kept[0], "x", 1))
    with pytest.raises(SystemExit, match=r"0\.1\.0 is released and stays"):
        write_newest(newest, changelog)
    assert sums(newest) == kept
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("changelog", "released"),
    [("## [Unreleased]\n- 0.1.0 comes\n", False), ("## [0.1.0] - 2026-12-01\n", True), ("## [0.1.01]\n", False)],
)
def test_a_version_is_released_once_the_changelog_has_its_heading(changelog: str, *, released: bool) -> None:
    assert is_released("0.1.0", changelog) is released


def _named(schema: dict[str, Any], body: Any, defs: dict[str, Any], found: set[str]) -> None:
    """Collect `Part.field` for each field of a schema that the body gives a value."""
    if (ref := schema.get("$ref")) is not None:
        schema = defs[ref.rsplit("/", 1)[-1]] | {"title": ref.rsplit("/", 1)[-1]}
    for one in schema.get("anyOf", ()):
        _named(one, body, defs, found)
    if isinstance(body, list):
        for item in body:
            _named(schema.get("items", {}), item, defs, found)
    elif isinstance(body, dict):
        for name, field in schema.get("properties", {}).items():
            if name in body:
                found.add(f"{schema['title']}.{name}")
                _named(field, body[name], defs, found)


@pytest.mark.parametrize("name", sorted(schemas.messages()))
def test_every_field_of_every_part_of_a_message_has_a_value_in_what_is_kept(name: str) -> None:
    """A field that is left out where it is not known would be missing without anybody's noticing."""
    schema = schemas.json_schemas()[name]
    defs: dict[str, Any] = schema.get("$defs", {})
    kept = (json.loads(line) for line in (NEWEST / "messages.jsonl").read_text().splitlines())
    (body,) = (one["body"] for one in kept if one["message"] == name)
    found: set[str] = set()
    _named(schema, body, defs, found)
    parts = {name: schema, **defs}
    fields = {f"{part}.{field}" for part, of in parts.items() for field in of.get("properties", {})}
    assert fields - found == set()
