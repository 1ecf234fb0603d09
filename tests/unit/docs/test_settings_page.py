"""`docs/settings.md` says what the models of the settings say, of every key."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from services.advisor.core.policy import PolicySettings
from services.evictor.core.plugin import PluginSettings
from services.reporter.core.field import FieldSettings
from shared.errors import BadConfig
from shared.settings import Settings, read_environment
from sublet.settings_page.page import anchor, page, rows, variable
from sublet.settings_page.sections import Section, sections
from sublet.settings_page.values import bounds_text, default_text, unit_of

PAGE = Path(__file__).parents[3] / "docs/settings.md"
BASES: tuple[type[BaseModel], ...] = (Settings, PolicySettings, PluginSettings, FieldSettings)
SECTIONS = list(sections())


def descendants(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for child in model.__subclasses__():
        yield child
        yield from descendants(child)


def test_the_committed_page_is_what_the_models_give() -> None:
    """After a change of a model: make settings."""
    assert PAGE.read_text() == page(), "docs/settings.md is out of date: run make settings"


def test_every_model_of_settings_is_on_the_page() -> None:
    shown = {section.model for section in SECTIONS}
    ours = {m for base in BASES for m in descendants(base) if m.__module__.startswith(("services.", "shared."))}
    assert {f"{m.__module__}.{m.__qualname__}" for m in ours - shown} == set()
    assert len(ours) > 20


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_every_key_has_a_row_and_its_variable_leads_to_it(section: Section) -> None:
    found = list(rows(section))
    assert [row.key for row in found] == list(section.model.model_fields)
    for row in found:
        assert row.sentence.endswith((".", "`.", ".)"))
        if row.variable:
            tree: Any = read_environment({row.variable: "17"})
            for level in (*section.path, row.key):
                tree = tree[level]
            assert tree == 17


def test_every_link_leads_to_a_heading_or_a_page() -> None:
    text = re.sub(r"`[^`\n]*`", "", PAGE.read_text())
    headings = {anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        file, _, place = target.partition("#")
        assert (PAGE.parent / file).is_file() if file else place in headings, target


def test_what_the_machine_decides_is_not_a_value_on_the_page() -> None:
    defaults = {row.key: row.default for row in rows(SECTIONS[0])}
    assert defaults["node"] == "This host's name"
    assert defaults["state_dir"].startswith("/var/lib/sublet for root")


class Base(Settings):
    """A model."""

    told_s: float = 1.0
    """A sentence of the base."""


class Child(Base):
    """Another default alone."""

    told_s: float = 2.0


class Silent(Settings):
    """A field without a sentence."""

    odd: bool = False


class Unitless(Settings):
    """A number without a unit."""

    odd: int = 0
    """Something."""


class Around(Settings):
    """Gives an inner model another default than its own."""

    inner: Base = Base(told_s=7)
    """What is inside."""


def test_a_default_alone_keeps_the_sentence_of_the_base() -> None:
    (row,) = rows(Section(("x",), Child, ""))
    assert (row.default, row.unit, row.sentence) == ("`2`", "seconds", "A sentence of the base.")
    assert row.variable == variable(("x", "told_s")) == "SUBLET_X__TOLD_S"


def test_an_inner_model_has_the_defaults_that_the_outer_one_gives() -> None:
    (row,) = rows(Section(("x", "inner"), Base, "", Around().inner))
    assert row.default == "`7`"


@pytest.mark.parametrize(("model", "says"), [(Silent, "Silent.odd has no sentence"), (Unitless, "'odd' is a number")])
def test_a_field_that_says_too_little_is_refused(model: type[BaseModel], says: str) -> None:
    with pytest.raises(BadConfig, match=says):
        list(rows(Section((), model, "")))


class Shapes(BaseModel):
    """Values of many kinds."""

    a: Annotated[float, Field(gt=0, le=1)]
    b: Annotated[int, Field(ge=0)] | None
    c: Annotated[int, Field(ge=1 << 20)]
    d: tuple[str, ...]
    e: dict[str, Annotated[float, Field(lt=5)]]
    f: Path
    g: bool
    h: dict[str, dict[str, Any]]


@pytest.mark.parametrize(
    ("key", "want"),
    [
        ("a", "number above 0 to 1"),
        ("b", "whole number from 0 or `null`"),
        ("c", "whole number from 1048576 (1 MiB)"),
        ("d", "list: text"),
        ("e", "mapping: number below 5"),
        ("f", "path"),
        ("g", "`true`, `false`"),
        ("h", "mapping"),
    ],
)
def test_bounds_are_said_in_words(key: str, want: str) -> None:
    assert bounds_text(Shapes.model_json_schema()["properties"][key], {}, "bytes" if key == "c" else "") == want


def test_the_longest_end_of_a_key_says_its_unit() -> None:
    number = {"type": "number"}
    assert unit_of("wait_s", number) == "seconds"
    assert unit_of("refault_bytes_s", number) == "bytes a second"
    assert unit_of("share", number) == "ratio"
    assert unit_of("name", {"type": "string"}) == ""


@pytest.mark.parametrize(
    ("value", "unit", "want"),
    [
        (None, "", "`null`"),
        (True, "", "`true`"),
        (1.0, "seconds", "`1`"),
        (1 << 30, "bytes", "`1073741824` (1 GiB)"),
        (1000, "bytes", "`1000`"),
        (("a", "b"), "", "`[a, b]`"),
        ({"a": 5.5}, "ratio", "`{a: 5.5}`"),
    ],
)
def test_a_default_stands_as_in_the_file(value: object, unit: str, want: str) -> None:
    assert default_text(value, unit) == want
