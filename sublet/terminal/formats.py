"""The output formats of `-o`, the same for every command: table, wide, name, json, yaml or jsonpath=TEMPLATE."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from typer.models import OptionInfo

from shared.core.text.did_you_mean import closest
from shared.errors import Refused
from sublet.output import as_text

if TYPE_CHECKING:
    from sublet.terminal.jsonpath import Template

JSONPATH = "jsonpath="
_OLDER_WORDS = {"text": "table", "screen": "table"}
"""As `-o` was said before every command had the same words."""


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """How a command prints what it has."""

    kind: str
    template: "Template | None" = None

    @property
    def is_table(self) -> bool:
        """Whether a table for people is wanted."""
        return self.kind in ("table", "wide")


@dataclass(frozen=True, slots=True)
class OutputFormats:
    """The formats that a command has; each has jsonpath too."""

    kinds: tuple[str, ...]

    @property
    def option(self) -> OptionInfo:
        """The option `-o`, with these formats in its help and its completion."""
        found: OptionInfo = typer.Option(
            "--output", "-o", metavar="|".join((*self.kinds, f"{JSONPATH}TEMPLATE")), help="How to print it.",
            autocompletion=lambda: [*self.kinds, JSONPATH],
        )  # fmt: skip
        return found

    def read(self, text: str) -> OutputFormat:
        """The value of `-o`.

        Raises:
            Refused: it is none of them, or the template cannot be read.
        """
        if text.startswith(JSONPATH):
            from sublet.terminal.jsonpath import read_template  # its patterns take a tenth of the start of a command

            return OutputFormat("jsonpath", read_template(text.removeprefix(JSONPATH)))
        kind = _OLDER_WORDS.get(text, text)
        if kind not in self.kinds:
            meant = closest(text, self.kinds)
            hint = f" (did you mean {meant!r}?)" if meant else ""
            raise Refused(
                f"--output {text!r}: want {', '.join(self.kinds)} or {JSONPATH}TEMPLATE{hint}", reason="option"
            )
        return OutputFormat(kind)


OBJECTS = OutputFormats(("table", "wide", "name", "json", "yaml"))
"""Of what has names."""
EVENTS = OutputFormats((*OBJECTS.kinds, "cloudevents"))
"""Of events, each of which is printed by itself."""
DOCUMENT = OutputFormats(("table", "json", "yaml"))
"""Of one answer as a whole."""
PLANS = OutputFormats(("table", "wide", "json", "yaml"))
"""Of one answer whose table may be wide."""


@dataclass(frozen=True, slots=True)
class ObjectList:
    """Objects to print: as a table, by name, or as documents."""

    names: tuple[str, ...]
    """Of each, as kind/name."""
    table: Callable[[bool], str]
    """The table; wide or not."""
    document: Callable[[], Any]
    """The object, or the list of all."""


def printed(objects: ObjectList, wanted: OutputFormat) -> str:
    """The objects in that form."""
    if wanted.is_table:
        return objects.table(wanted.kind == "wide")
    if wanted.kind == "name":
        return "\n".join(objects.names)
    return document_text(objects.document(), wanted)


def document_text(document: Any, wanted: OutputFormat) -> str:
    """A document in a form for programs: JSON, YAML, or what a template takes of it."""
    if wanted.template is not None:
        return wanted.template.render(document)
    return as_text(document, "json" if wanted.kind == "json" else "yaml")
