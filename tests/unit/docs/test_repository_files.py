"""What stands at the door of the repository: license, marks for types, templates and hooks."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FORMS = sorted(path.name for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")


def test_the_license_is_in_the_package_and_is_the_one_that_it_names() -> None:
    assert PROJECT["project"]["license"] == "Apache-2.0"
    for pattern in PROJECT["project"]["license-files"]:
        assert (ROOT / pattern).read_text().split()[:4] == ["Apache", "License", "Version", "2.0,"]


def test_every_package_of_the_wheel_says_that_it_is_typed() -> None:
    setuptools = PROJECT["tool"]["setuptools"]
    packages = [pattern.rstrip("*") for pattern in setuptools["packages"]["find"]["include"]]
    assert packages
    for package in packages:
        assert (ROOT / package / "py.typed").is_file(), package
        assert "py.typed" in setuptools["package-data"][package], package


def test_a_hook_is_a_target_of_make_and_comes_from_nowhere_else() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [source["repo"] for source in config["repos"]] == ["local"]
    for hook in config["repos"][0]["hooks"]:
        assert hook["language"] == "system"
        command, target = hook["entry"].split()
        assert command == "make"
        assert target in targets


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_what_github_wants_of_one(name: str) -> None:
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE" / name).read_text())
    assert form.keys() >= {"name", "description", "body"}
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert asked
    assert len({part["id"] for part in asked}) == len(asked)
    for part in asked:
        assert part["attributes"]["label"]
        assert part["type"] in {"textarea", "input", "dropdown", "checkboxes"}
        assert ("options" in part["attributes"]) == (part["type"] in {"dropdown", "checkboxes"})


def test_there_is_a_form_for_a_bug_and_one_for_a_feature() -> None:
    assert FORMS == ["bug.yml", "feature.yml"]
