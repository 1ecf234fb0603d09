"""Tell which cgroups cannot have changed since the last pass, because a group above them has not. Pure.

The kernel counts in a group what runs below it. Where its CPU time and its memory are to the last digit what they were
a pass ago, nothing has run below it, and its pods and their containers need not be read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.metrics.core.figures.target import USAGE_COUNTER
from services.metrics.core.figures.values import NUMBER, Raw

MEMORY = "memory_usage_bytes"


@dataclass(slots=True)
class Stillness:
    """The groups that stand still in this pass. A group is read before those below it."""

    _before: Mapping[str, Raw] = field(default_factory=dict)
    _still: set[str] = field(default_factory=set)

    def begin(self, homes: Mapping[str, Raw]) -> None:
        """Begin a pass with what was just read of groups that hold other groups; those whose CPU time
        is 0 or whose memory is not known are not believed to count what is below them."""
        self._still = {group for group, raw in homes.items() if _counts(raw) and self._before.get(group) == raw}
        self._before = homes

    def add(self, group: str, raw: Raw) -> None:
        """A group was read as it was a pass ago."""
        if _counts(raw):
            self._still.add(group)

    def holds(self, group: str) -> bool:
        """Return whether a group stands still because the one above it does."""
        if group.rpartition("/")[0] not in self._still:
            return False
        self._still.add(group)
        return True


def _counts(raw: Raw) -> bool:
    used = raw.get(USAGE_COUNTER)
    return isinstance(used, NUMBER) and used > 0 and MEMORY in raw
