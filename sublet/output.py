"""How the commands print data: plain columns for people and pipes, JSON and YAML for programs."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import typer

Format = Literal["table", "json", "yaml"]
FormatOption = Annotated[Format, typer.Option("--output", "-o", help="How to print it.")]
NONE = "-"

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


def printable(text: str) -> str:
    """A stranger's text for a terminal: control and other unprintable characters as `\\x1b`, the rest as it is."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def columns(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Left-aligned columns, three spaces apart, one line a row; an empty cell is a dash."""
    lines = [list(header), *([cell or NONE for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join("   ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


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
    return yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True).removesuffix("\n")


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
