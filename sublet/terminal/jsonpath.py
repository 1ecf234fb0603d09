"""The part of kubectl's JSONPath templates that scripts use, on a document.

`{.a.b}`, `{.items[*].x}`, `[0]`, `[-1]`, `['key']`, `\\.` in a key, `{"text"}`, `{range .items[*]}…{end}`, and text
around them (https://kubernetes.io/docs/reference/kubectl/jsonpath/). Filters, slices and recursive descent are refused.
No library reads kubectl's form: those for RFC 9535 know neither templates, nor ranges, nor its escapes.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import Refused
from sublet.output import printable

MAX_TEMPLATE_CHARS = 4096

_PART = re.compile(r"\{([^{}]*)\}|([^{}]+)")
_STEP = re.compile(
    r"\.(?P<name>(?:\\.|[^.\[\]'\"\\\s])+)|\[(?P<all>\*)\]|\[(?P<index>-?[0-9]{1,9})\]|\[(?P<quote>['\"])(?P<key>[^'\"]*)(?P=quote)\]"
)
_TEXT = re.compile(r"\"((?:\\.|[^\"\\])*)\"|'((?:\\.|[^'\\])*)'")
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\'": "'", "\\\\": "\\"}


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a path: a key, a position, or every item (None)."""

    key: str | int | None


@dataclass(frozen=True, slots=True)
class Template:
    """Pieces in their order: text, the values of a path, or a template for each value of a path."""

    pieces: "tuple[str | tuple[PathStep, ...] | tuple[tuple[PathStep, ...], Template], ...]"

    def render(self, document: Any) -> str:
        """The template with the document's values; a path that leads nowhere gives nothing, as with kubectl."""
        return "".join(self._rendered(document))

    def _rendered(self, document: Any) -> Iterator[str]:
        for piece in self.pieces:
            if isinstance(piece, str):
                yield piece
            elif len(piece) == 2 and isinstance(piece[1], Template):
                path, inner = piece
                yield from (inner.render(value) for value in _values(document, path))
            else:
                yield " ".join(_text(value) for value in _values(document, piece))


def read_template(text: str) -> Template:
    """A template as it is typed.

    Raises:
        Refused: it is longer than any that a person types, or cannot be read; names the part.
    """
    if len(text) > MAX_TEMPLATE_CHARS:
        raise Refused(f"jsonpath of {len(text)} characters: want {MAX_TEMPLATE_CHARS} at most", reason="malformed")
    parts = list(_PART.finditer(text))
    if sum(len(part[0]) for part in parts) != len(text) or not parts:
        raise _bad(text, "want {.path}, as in {.metadata.name}")
    pieces, rest = _read(parts, text)
    if rest:
        raise _bad(text, "{end} without {range}")
    return Template(pieces)


def _read(parts: Sequence[re.Match[str]], text: str) -> tuple[tuple[Any, ...], Sequence[re.Match[str]]]:
    """Pieces up to an {end}, and what stands from there on."""
    pieces: list[Any] = []
    while parts:
        part, parts = parts[0], parts[1:]
        inner = None if part[1] is None else part[1].strip()
        if inner is None:
            pieces.append(part[2])
        elif inner == "end":
            return tuple(pieces), (part, *parts)
        elif inner.startswith("range "):
            found, parts = _read(parts, text)
            if not parts:
                raise _bad(text, "{range} without {end}")
            pieces.append((_path(inner.removeprefix("range ").strip(), text), Template(found)))
            parts = parts[1:]
        elif quoted := _TEXT.fullmatch(inner):
            said = quoted[1] if quoted[1] is not None else quoted[2]
            pieces.append(re.sub(r"\\.", lambda escape: _ESCAPES.get(escape[0], escape[0]), said))
        else:
            pieces.append(_path(inner, text))
    return tuple(pieces), ()


def _path(inner: str, text: str) -> tuple[PathStep, ...]:
    rest = inner.removeprefix("$").removeprefix("@")
    if rest in ("", "."):
        return ()
    steps: list[PathStep] = []
    at = 0
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            raise _bad(text, f"{rest[at:]!r}: want .key, [0], [*] or ['key']; filters and slices are not known here")
        steps.append(PathStep(_key(step)))
        at = step.end()
    return tuple(steps)


def _key(step: re.Match[str]) -> str | int | None:
    if step["name"] is not None:
        return None if step["name"] == "*" else re.sub(r"\\(.)", r"\1", step["name"])
    if step["index"] is not None:
        return int(step["index"])
    return step["key"]


def _values(value: Any, path: Sequence[PathStep]) -> Iterator[Any]:
    if not path:
        yield value
        return
    key, rest = path[0].key, path[1:]
    if key is None:
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _values(item, rest)
    elif _has(value, key):
        yield from _values(value[key], rest)


def _has(value: Any, key: str | int) -> bool:
    if isinstance(key, str):
        return isinstance(value, dict) and key in value
    return isinstance(value, list) and -len(value) <= key < len(value)


def _text(value: Any) -> str:
    """A value as kubectl prints it, but for what would command a terminal: strangers write some of the values."""
    if not isinstance(value, str):
        return json.dumps(value)
    return "".join(c if c in "\n\t" else printable(c) for c in value)


def _bad(text: str, why: str) -> Refused:
    return Refused(f"jsonpath {text!r}: {why}", reason="malformed")
