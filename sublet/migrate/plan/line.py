"""A migration plan: a line for each value of the other system, and the resulting chart values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Effect = Literal["maps", "later", "kept", "off", "nothing", "wrong"]
"""maps: to a value of the chart. later: to one that waits until nodes are taken over. kept: nothing to do.
off: switched off there. nothing: no counterpart. wrong: cannot be read, or is out of our bounds."""


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One value of the other system, and what becomes of it."""

    source: str
    """The object that says it, as Kind/name."""
    given_key: str
    given: Any
    effect: Effect
    key: str = ""
    """The value of the chart that it maps to, as settings.advisor.policy; empty where there is none."""
    setting: Any = None
    note: str = ""
    """Why it is so, and what to do."""

    def document(self) -> dict[str, Any]:
        """For programs."""
        found = {"source": self.source, "field": self.given_key, "value": self.given, "effect": self.effect}
        if self.key:
            found |= {"key": self.key, "setting": self.setting}
        return {**found, "note": self.note}


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """All lines of a system."""

    system: str
    lines: Sequence[PlanLine]

    @property
    def faults(self) -> list[PlanLine]:
        """Lines that keep the plan from being complete."""
        return [line for line in self.lines if line.effect == "wrong"]

    @property
    def values(self) -> dict[str, Any]:
        """The values of the chart, observing, for the other system still works; of two lines for one the later wins."""
        return {"mode": "observe", **nested(line for line in self.lines if line.effect == "maps")}

    @property
    def later(self) -> dict[str, Any]:
        """The values that wait."""
        return nested(line for line in self.lines if line.effect == "later")

    def document(self) -> dict[str, Any]:
        """For programs."""
        lines = [line.document() for line in self.lines]
        return {"system": self.system, "lines": lines, "values": self.values, "later": self.later}


def nested(lines: Iterable[PlanLine]) -> dict[str, Any]:
    """The values of the lines, as a document."""
    values: dict[str, Any] = {}
    for line in lines:
        *path, last = line.key.split(".")
        here = values
        for name in path:
            here = here.setdefault(name, {})
        here[last] = line.setting
    return values
