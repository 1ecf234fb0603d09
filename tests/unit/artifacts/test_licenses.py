"""Licenses of dependencies: the page is current, each is allowed; and each dependency has its reason."""

import re
from email.message import Message
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.artifacts.checkout import ROOT
from deploy.artifacts.licenses import ALLOWED, PAGE, Licensed, license_of, licensed, page, parts, pinned

DEPENDENCIES = ROOT / "docs/dependencies.md"


@pytest.fixture(scope="module")
def found() -> list[Licensed]:
    return list(licensed(pinned()))


def test_the_page_says_what_the_installed_packages_say(found: list[Licensed]) -> None:
    """Else: make licenses"""
    assert PAGE.read_text() == page(found)
    assert {one.name: one.version for one in found} == pinned()


def test_no_license_is_outside_of_those_that_are_allowed(found: list[Licensed]) -> None:
    assert len(found) > 50
    assert {one.name: one.license for one in found if not parts(one.license) <= ALLOWED} == {}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([("License-Expression", "MIT OR Apache-2.0"), ("License", "old words")], "MIT OR Apache-2.0"),
        ([("License", "MIT")], "MIT"),
        ([("License", "Apache 2.0")], "Apache-2.0"),
        ([("Classifier", "License :: OSI Approved :: MIT License")], "MIT"),
        ([("License", "A text\nof many lines"), ("Classifier", "License :: OSI Approved :: MIT License")], "MIT"),
        ([("License", "GPL-3.0-only")], "GPL-3.0-only"),
        ([("Classifier", "License :: Other/Proprietary License")], "Other/Proprietary License"),
        ([], "none named"),
    ],
)
def test_a_license_is_read_from_the_most_exact_field(fields: list[tuple[str, str]], expected: str) -> None:
    told: Any = Message()
    for name, value in fields:
        told[name] = value
    assert license_of(told) == expected


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 AND MIT", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR GPL-3.0-only) AND AGPL-3.0-only", False),
        ("none named", False),
        ("", False),
    ],
)
def test_of_a_choice_one_is_enough_and_of_a_sum_all_are_needed(expression: str, allowed: bool) -> None:
    assert (parts(expression) <= ALLOWED) is allowed


def test_the_table_of_dependencies_gives_a_reason_for_each_and_for_nothing_else() -> None:
    rows = re.findall(r"^\| ([a-z][^|]*) \| ([^|]{10,}) \|$", DEPENDENCIES.read_text(), re.MULTILINE)
    told = [canonicalize_name(name) for names, _ in rows if names != "package" for name in names.split(", ")]
    assert sorted(told) == sorted(declared())


def declared() -> set[str]:
    """Every distribution that some requirement file asks for by itself."""
    texts = (path.read_text() for path in (ROOT / "requirements").glob("*.in"))
    lines = [line for text in texts for line in text.splitlines() if line and not line.startswith(("#", "-"))]
    return {canonicalize_name(Requirement(line).name) for line in lines}
