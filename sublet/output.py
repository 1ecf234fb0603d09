"""Prints data of commands: plain columns for people and pipes, JSON and YAML for programs."""

import json
import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

NONE = "-"
COLUMN_GAP = "   "
PIPE_COLUMNS = 100_000
"""No row is folded where no terminal is."""

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


def printable(text: str) -> str:
    """A stranger's text for a terminal: control and other unprintable characters as `\\x1b`, the rest as it is."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def output_columns() -> int:
    """How wide what is printed may be: as the terminal; in a pipe a line is a line however long it is."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_COLUMNS


def columns(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[int] = ()) -> str:
    """The table as text, one line a row; an empty cell is a dash. On a terminal it is no wider than that.

    In a pipe a row is one line however long it is: programs read lines.
    """
    import io

    from rich.console import Console

    console = Console(file=io.StringIO(), width=output_columns(), color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table_of(header, rows, right=right), soft_wrap=False)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def print_rendered(renderable: "RenderableType") -> None:
    """Print a screen as wide as may be; in a pipe no line is folded, and none has blanks behind it."""
    from rich.console import Console

    console = Console(width=output_columns())
    with console.capture() as captured:
        console.print(renderable)
    text = captured.get()
    # A terminal's own signs may stand behind the blanks there.
    print(text if console.is_terminal else "\n".join(line.rstrip() for line in text.splitlines()) + "\n", end="")


def table_of(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[int] = (),
    folded: Collection[int] | None = None,
) -> "Table":
    """The one look of tables: no boxes, columns three spaces apart, numbers to the right where the caller says so.

    What is too wide is folded, in the columns `folded` where it says some, else in any.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, len(COLUMN_GAP), 0, 0), header_style="bold")
    for number, title in enumerate(header):
        justify: Literal["left", "right"] = "right" if number in right else "left"
        whole = folded is not None and number not in folded
        table.add_column(Text(printable(title).upper()), justify=justify, overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*(Text(printable(cell) or NONE) for cell in row))
    return table


@dataclass(frozen=True, slots=True)
class LineTable:
    """The same look for rows that come one by one: widths are given, and a longer cell moves the rest of its line."""

    header: Sequence[str]
    widths: Sequence[int]
    right: Collection[int] = ()

    def head(self) -> str:
        """The header as a line."""
        return self.line([title.upper() for title in self.header])

    def line(self, cells: Sequence[str]) -> str:
        """A row as a line."""
        padded = [
            printable(cell).rjust(width) if number in self.right else printable(cell).ljust(width)
            for number, (cell, width) in enumerate(zip(cells, self.widths, strict=True))
        ]
        return COLUMN_GAP.join(padded).rstrip()


def as_text(document: Any, output: Literal["json", "yaml"]) -> str:
    """A document of JSON values as text, keys in their order."""
    if output == "json":
        return json.dumps(document, indent=2)
    return as_yaml(document)


def as_yaml(document: Any) -> str:
    """YAML as kubectl prints it, without the last line's end: text that would be read as something else is quoted."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Only the quotes differ from the plain one."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        tag = dumper.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]
        plain = tag == "tag:yaml.org,2002:str" and value.isprintable()
        style = "|" if "\n" in value and value.replace("\n", "").isprintable() else None if plain else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)

    Dumper.add_representer(str, text)
    dumped = yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True).removesuffix("\n")
    # What could turn a terminal's text around is printable to YAML; by now it stands in double quotes.
    return "".join(c if c.isprintable() or c == "\n" else _yaml_escaped(c) for c in dumped)


def _yaml_escaped(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 1 << 16 else f"\\U{ord(character):08x}"


def duration(seconds: float) -> str:
    """A duration in its two leading units at most: 43s, 2m5s, 3h12m, 8d."""
    left_s = max(0, int(seconds))
    if left_s < _MINUTE_S:
        return f"{left_s}s"
    if left_s < _HOUR_S:
        return f"{left_s // _MINUTE_S}m{left_s % _MINUTE_S}s"
    if left_s < _DAY_S:
        return f"{left_s // _HOUR_S}h{left_s % _HOUR_S // _MINUTE_S}m"
    return f"{left_s // _DAY_S}d"


def age(since: datetime | None, now: datetime) -> str:
    """How long ago, as `duration` writes it."""
    return NONE if since is None else duration((now - since).total_seconds())
