"""Checked reading of pieces of a document that a person wrote. Every refusal names place, value and wish."""

import re
from typing import Any

from shared.errors import Refused

# Lower-case DNS labels joined by dots: no "/", no "..", no leading or trailing "-" (RFC 1123, as Kubernetes asks).
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_MAX_NAME, _MAX_LABEL = 253, 63
_MAX_INTEGER = (1 << 31) - 1
_PLAIN_TEXT = frozenset({str})


def refused(where: str, why: str) -> Refused:
    """The error for a malformed piece."""
    return Refused(f"{where}: {why}", reason="malformed")


def mapping(given: object, where: str) -> dict[str, Any]:
    """A mapping with text keys; nothing given is an empty one."""
    if given is None:
        return {}
    # The types first, which costs no call a key: almost every mapping comes from JSON.
    if not isinstance(given, dict) or not (
        _PLAIN_TEXT.issuperset(map(type, given)) or all(isinstance(key, str) for key in given)
    ):
        raise refused(where, f"want a mapping of names to values, got {type(given).__name__}")
    return given


def items(given: object, where: str) -> list[Any]:
    """A list; nothing given is an empty one."""
    if given is None:
        return []
    if not isinstance(given, list):
        raise refused(where, f"want a list, got {type(given).__name__}")
    return given


def text(given: object, where: str) -> str:
    """Text that can be handed to the kernel. A number stays refused: YAML reads 010 as 8 and `on` as true."""
    if not isinstance(given, str) or "\0" in given:
        raise refused(where, f"{given!r}: want a string; put a number in quotes")
    return given


def texts(given: object, where: str) -> dict[str, str]:
    """A mapping of text to text."""
    return {key: text(value, f"{where}.{key}") for key, value in mapping(given, where).items()}


def words(given: object, where: str) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(text(word, f"{where}[{index}]") for index, word in enumerate(items(given, where)))


def integer(given: object, where: str, *, lowest: int = -_MAX_INTEGER) -> int:
    """A whole number of 32 bits."""
    # In Python True is an int.
    if not isinstance(given, int) or isinstance(given, bool) or not lowest <= given <= _MAX_INTEGER:
        raise refused(where, f"{given!r}: want a whole number from {lowest} to {_MAX_INTEGER}")
    return given


def dns_name(given: object, where: str, *, dots: bool = True) -> str:
    """A Kubernetes object name; without `dots` a single label, as for containers and namespaces."""
    fits = isinstance(given, str) and len(given) <= _MAX_NAME and _NAME.fullmatch(given) and (dots or "." not in given)
    if not isinstance(given, str) or not fits:
        most = _MAX_NAME if dots else _MAX_LABEL
        raise refused(
            where,
            f"{given!r}: want 1 to {most} lower-case letters, digits and '-'"
            + (" or '.'" if dots else "")
            + ", first and last a letter or digit",
        )
    return given
