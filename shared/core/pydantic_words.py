"""What pydantic found wrong, in the words of all our errors: `key = value: want a bound`.

Its own sentences name its types and neither value nor key; no message of ours repeats them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

UNKNOWN, MISSING = "extra_forbidden", "missing"
_KIND_NAMES = (
    "constrained-float",
    "constrained-int",
    "constrained-str",
    "float",
    "int",
    "str",
    "bool",
    "tuple",
    "dict",
)
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
    "multiple_of": ("a multiple of", "multiple_of"),
}
_WISHES = {
    MISSING: "must be given",
    UNKNOWN: "no such field",
    "finite_number": "want a finite number",
    "string_type": "want text",
    "string_sub_type": "want text",
    "string_unicode": "want text in UTF-8",
    "path_type": "want a path",
    "bytes_type": "want bytes",
    "none_required": "want null",
    "is_instance_of": "want another kind of value",
    "json_invalid": "not JSON",
    "json_type": "want JSON as text",
    "frozen_set_type": "want a list",
    "set_type": "want a list",
    "iterable_type": "want a list",
    "mapping_type": "want a mapping of keys to values",
    "date_type": "want a date",
    "timezone_aware": "want a moment with its time zone, as in 2026-01-31T12:00:00Z",
}
_KINDS = (
    ("int", "want a whole number"),
    ("float", "want a number"),
    ("decimal", "want a number"),
    ("bool", "want true or false"),
    ("dict", "want a mapping of keys to values"),
    ("model", "want a mapping of keys to values"),
    ("dataclass", "want a mapping of keys to values"),
    ("list", "want a list"),
    ("tuple", "want a list"),
    ("datetime", "want a moment, as in 2026-01-31T12:00:00Z"),
    ("date", "want a date, as in 2026-01-31"),
    ("time_delta", "want a duration"),
    ("url", "want an address, as in https://host:port/path"),
    ("uuid", "want a UUID"),
)
_PATTERNS = {
    r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$": "a DNS name: lower-case letters, digits, '-' and '.', at most 253",
    r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$": "a DNS label: lower-case letters, digits and '-', at most 63",
}
"""What texts of these patterns are; others are shown as they are."""


@dataclass(frozen=True, slots=True)
class FieldFault:
    """One wrong field: where it stands, what is there, and what is wanted."""

    path: tuple[str, ...]
    given: Any
    wish: str
    kind: str
    """Pydantic's name of the fault."""


def field_faults(error: ValidationError) -> list[FieldFault]:
    """Every wrong field once, in the order of the model; several kinds that a field may have are one wish."""
    found: dict[tuple[str, ...], list[ErrorDetails]] = {}
    for item in error.errors(include_url=False):
        found.setdefault(_path(item), []).append(item)
    return [
        FieldFault(path, items[-1]["input"], _joined([_wish(item) for item in items]), items[0]["type"])
        for path, items in found.items()
    ]


def first_fault(error: ValidationError, *, whole: str = "document") -> str:
    """The first wrong field as `path: want`, without its value, which may be a stranger's; `whole` has no path."""
    fault = field_faults(error)[0]
    return f"{'.'.join(fault.path) or whole}: {fault.wish}"


def _path(item: ErrorDetails) -> tuple[str, ...]:
    """The keys from the top; without the names that pydantic gives to the kinds of a union."""
    return tuple(str(part) for part in item["loc"] if not _names_a_kind(part))


def _names_a_kind(part: int | str) -> bool:
    """No key of ours has such a character, and none is called like one of pydantic's kinds."""
    return isinstance(part, str) and (("[" in part and part.endswith("]")) or part in _KIND_NAMES)


def _wish(item: ErrorDetails) -> str:
    kind, context = item["type"], item.get("ctx") or {}
    if item["loc"] and item["loc"][-1] == "[key]":
        return "want a name as the key; put it into quotes"
    if kind in _BOUNDS:
        word, key = _BOUNDS[kind]
        return f"want {word} {_number(context[key])}"
    if kind in ("literal_error", "enum"):
        return f"want {context['expected']}{_meant(item['input'], context['expected'])}"
    if kind in ("value_error", "assertion_error"):
        return str(context.get("error") or "cannot be used")
    if kind == "string_pattern_mismatch":
        pattern = str(context["pattern"])
        return f"want {_PATTERNS.get(pattern, f'text that fits {pattern}')}"
    if kind.endswith(("too_long", "too_short")):
        return _length(kind, context)
    return _WISHES.get(kind) or next((wish for name, wish in _KINDS if kind.startswith(f"{name}_")), "cannot be used")


def _meant(given: Any, expected: str) -> str:
    """A hint for a misspelt word; `expected` is pydantic's list: 'a', 'b' or 'c'."""
    known = [word for word in expected.split("'")[1::2] if word]
    hints = get_close_matches(given, known, n=1) if isinstance(given, str) and len(known) > 1 else []
    return f"; did you mean {hints[0]!r}?" if hints else ""


def _length(kind: str, context: Mapping[str, Any]) -> str:
    most = kind.endswith("too_long")
    bound = context["max_length" if most else "min_length"]
    of = f"{'character' if kind.startswith('string') else 'item'}{'' if bound == 1 else 's'}"
    return f"want at {'most' if most else 'least'} {bound} {of}"


def _number(value: Any) -> str:
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _joined(wishes: Sequence[str]) -> str:
    """`want a` and `want b` as one wish."""
    return "want " + " or ".join(_bare(wishes)) if len(wishes) > 1 else wishes[0]


def _bare(wishes: Sequence[str]) -> Iterator[str]:
    for wish in dict.fromkeys(wishes):
        yield wish.removeprefix("want ")
