"""Label selectors in Kubernetes' own syntax: `a=b,c in (d,e),f notin (g),!h,i,j>1`.

An absent label satisfies only "not equal", "not in" and "does not exist".
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn

from shared.errors import Refused

Operator = Literal["in", "notin", "exists", "absent", "gt", "lt"]

MAX_SELECTOR_CHARACTERS = 1024
"""As much as the kinds take; another's definition of them may have no bound."""
MAX_NUMBER = (1 << 63) - 1
"""Largest number that > and < compare with: they are of 64 bits."""

_OPERATORS: dict[str, Operator] = {
    "=": "in",
    "==": "in",
    "!=": "notin",
    "in": "in",
    "notin": "notin",
    ">": "gt",
    "<": "lt",
}
_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_WORD = re.compile(r"[^\s=!<>(),]+")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_PREFIX = 253
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One part of a selector, about one label. `bound` belongs to gt and lt, `values` to in and notin."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()
    bound: int = 0

    def holds(self, value: str | None) -> bool:
        """Whether a label of this value satisfies it; None: the label is absent."""
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case "gt" | "lt":
                number = None if value is None else number_of(value)
                return number is not None and (number > self.bound if self.operator == "gt" else number < self.bound)


@dataclass(frozen=True, slots=True)
class Selector:
    """All of these must hold; an empty selector takes every node."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels satisfies it."""
        for part in self.requirements:  # noqa: SIM110 - each pod is held against each profile: a generator costs more
            if not part.holds(labels.get(part.key)):
                return False
        return True

    @property
    def keys(self) -> frozenset[str]:
        """The labels that it asks for."""
        return frozenset(part.key for part in self.requirements)


def number_of(text: str) -> int | None:
    """The text as a 64-bit number, None when it is none."""
    number = int(text) if _NUMBER.fullmatch(text) else None
    return number if number is not None and -MAX_NUMBER - 1 <= number <= MAX_NUMBER else None


def expression(key: str, operator: Operator, values: Collection[str] = ()) -> Requirement:
    """One expression of a selector that is written as an object; `exists` and `absent` take no values.

    Raises:
        Refused: `selector`, with the key, and what is wrong with it or its values.
    """
    where = f"selector, key {key!r}"
    if not _is_key(key):
        raise Refused(f"{where}: want the name of a label", reason="selector")
    if bool(values) != (operator in ("in", "notin")):
        raise Refused(f"{where}: In and NotIn want values, Exists and DoesNotExist none", reason="selector")
    for value in values:
        if value and not _NAME.fullmatch(value):
            raise Refused(
                f"{where}: {value[:80]!r}: want a value of at most 63 letters, digits, - _ or .", reason="selector"
            )
    return Requirement(key, operator, frozenset(values))


def _is_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    fits = not slash or (_PREFIX.fullmatch(prefix) is not None and len(prefix) <= _MAX_PREFIX)
    return fits and _NAME.fullmatch(name) is not None


def parse_selector(text: str) -> Selector:
    """Read a selector.

    Raises:
        Refused: `selector`, with what was found and what is wanted there.
    """
    if len(text) > MAX_SELECTOR_CHARACTERS:
        raise Refused(
            f"selector {text[:80]!r}…: {len(text)} characters, want at most {MAX_SELECTOR_CHARACTERS}",
            reason="selector",
        )
    tokens = _TOKEN.findall(text)
    return _Reader(text, tokens).selector() if tokens else Selector()


class _Reader:
    """Reads the tokens of one selector from left to right."""

    def __init__(self, text: str, tokens: list[str]) -> None:
        self._text, self._tokens, self._next = text, tokens, 0

    def selector(self) -> Selector:
        found = [self._requirement()]
        while self._peek():
            self._expect(",")
            found.append(self._requirement())
        return Selector(tuple(found))

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(self._key(), "absent")
        key = self._key()
        if self._peek() in ("", ","):
            return Requirement(key, "exists")
        operator = _OPERATORS.get(self._peek())
        if operator is None:
            self._refuse(f"one of {' '.join(_OPERATORS)}")
        listed = self._take() in ("in", "notin")
        if operator in ("gt", "lt"):
            return Requirement(key, operator, bound=self._bound())
        return Requirement(key, operator, self._values() if listed else frozenset({self._value()}))

    def _key(self) -> str:
        if not _is_key(self._peek()):
            self._refuse("the name of a label")
        return self._take()

    def _value(self) -> str:
        """Parse a label's value; a missing one is empty."""
        word = self._peek()
        if not _WORD.fullmatch(word):
            return ""
        if not _NAME.fullmatch(word):
            self._refuse("a value of at most 63 letters, digits, - _ or .")
        return self._take()

    def _values(self) -> frozenset[str]:
        self._expect("(")
        values = {self._value()}
        while self._peek() == ",":
            self._take()
            values.add(self._value())
        self._expect(")")
        return frozenset(values)

    def _bound(self) -> int:
        number = number_of(self._peek())
        if number is None:
            self._refuse("a whole number of 64 bits")
        self._take()
        return number

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1]

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            self._refuse(repr(token))
        self._take()

    def _refuse(self, wanted: str) -> NoReturn:
        found = repr(self._peek()) if self._peek() else "its end"
        raise Refused(f"selector {self._text!r}: found {found}, want {wanted}", reason="selector")
