"""What `-o` means for commands that print objects: table, wide, name, json, yaml or jsonpath=TEMPLATE."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from shared.core.text.did_you_mean import closest
from shared.errors import Refused
from sublet.output import as_text
from sublet.terminal.jsonpath import Template, read_template

KINDS = ("table", "wide", "name", "json", "yaml")
JSONPATH = "jsonpath="


@dataclass(frozen=True, slots=True)
class ObjectFormat:
    """How objects are printed."""

    kind: str
    template: Template | None = None

    @property
    def is_table(self) -> bool:
        """Whether a table for people is wanted."""
        return self.kind in ("table", "wide")


@dataclass(frozen=True, slots=True)
class ObjectList:
    """Objects to print: as a table, by name, or as documents."""

    names: tuple[str, ...]
    """Of each, as kind/name."""
    table: Callable[[bool], str]
    """The table; wide or not."""
    document: Callable[[], dict[str, Any]]
    """The object, or the list of all."""


def object_format(text: str) -> ObjectFormat:
    """The value of `-o`.

    Raises:
        Refused: it is none of them, or the template cannot be read.
    """
    if text.startswith(JSONPATH):
        return ObjectFormat("jsonpath", read_template(text.removeprefix(JSONPATH)))
    if text not in KINDS:
        meant = closest(text, KINDS)
        hint = f" (did you mean {meant!r}?)" if meant else ""
        raise Refused(f"--output {text!r}: want {', '.join(KINDS)} or {JSONPATH}TEMPLATE{hint}", reason="option")
    return ObjectFormat(text)


def printed(objects: ObjectList, wanted: ObjectFormat) -> str:
    """The objects in that form."""
    if wanted.is_table:
        return objects.table(wanted.kind == "wide")
    if wanted.kind == "name":
        return "\n".join(objects.names)
    if wanted.template is not None:
        return wanted.template.render(objects.document())
    return as_text(objects.document(), "json" if wanted.kind == "json" else "yaml")


ObjectFormatOption = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="|".join((*KINDS, f"{JSONPATH}TEMPLATE")), help="How to print it.",
        autocompletion=lambda: [*KINDS, JSONPATH],
    ),
]  # fmt: skip
