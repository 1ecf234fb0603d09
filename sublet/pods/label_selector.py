"""Label selectors in kubectl's syntax: `app=web,tier!=db`, `app in (a,b)`, `app notin (a,b)`, `app`, `!app`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from shared.errors import Refused

MAX_SELECTOR_CHARS = 4096

_KEY = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?"
_EQUALITY = re.compile(rf"({_KEY})\s*(=|==|!=)\s*({_VALUE})")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_PRESENCE = re.compile(rf"(!?)\s*({_KEY})")


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One part of a selector. `values` None: any value."""

    key: str
    values: frozenset[str] | None
    wanted: bool

    def admits(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet it; a missing key meets `!=` and `notin`, as in Kubernetes."""
        found = self.key in labels if self.values is None else labels.get(self.key) in self.values
        return found == self.wanted


Selector = tuple[LabelRequirement, ...]


def read_selector(text: str) -> Selector:
    """A selector as it is typed; the empty one admits everything.

    Raises:
        Refused: it is longer than any that a person types, or a part of it cannot be read.
    """
    if len(text) > MAX_SELECTOR_CHARS:
        raise Refused(f"--selector of {len(text)} characters: want {MAX_SELECTOR_CHARS} at most", reason="option")
    if not text.strip():
        return ()
    # A comma in brackets parts values, any other parts requirements.
    return tuple(_requirement(part.strip()) for part in re.split(r",(?![^()]*\))", text))


def admits(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether labels meet every requirement."""
    return all(requirement.admits(labels) for requirement in selector)


def _requirement(part: str) -> LabelRequirement:
    if found := _EQUALITY.fullmatch(part):
        return LabelRequirement(found[1], frozenset({found[3]}), found[2] != "!=")
    if found := _SET.fullmatch(part):
        values = [value.strip() for value in found[3].split(",")]
        if all(re.fullmatch(_VALUE, value) for value in values):
            return LabelRequirement(found[1], frozenset(values), found[2] == "in")
    if found := _PRESENCE.fullmatch(part):
        return LabelRequirement(found[2], None, not found[1])
    raise Refused(
        f"--selector: {part!r}: want key=value, key!=value, 'key in (a,b)', 'key notin (a,b)', key or !key",
        reason="option",
    )
