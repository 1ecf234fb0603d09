"""Turns spread repeated checks: each item is checked once a period, and no moment has to check all of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from zlib import crc32

_PARTS = 1 << 32


@dataclass(slots=True)
class Turns:
    """The items that are due, by name. Times are monotonic seconds."""

    _next_s: dict[str, float] = field(default_factory=dict)

    def begin(self, names: Iterable[str], now_s: float, period_s: float) -> None:
        """Mark exactly these items as checked now."""
        # By their names, so that it is the same in every run: one after the other within the first period.
        self._next_s = {name: now_s + period_s * (crc32(name.encode()) / _PARTS) for name in names}

    def due(self, now_s: float, period_s: float) -> list[str]:
        """Return the items to check now; each is due again after a period."""
        # A period that has become shorter counts at once.
        found = [name for name, at_s in self._next_s.items() if not now_s < at_s <= now_s + period_s]
        self._next_s.update(dict.fromkeys(found, now_s + period_s))
        return found
