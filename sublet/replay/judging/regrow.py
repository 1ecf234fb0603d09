"""`Regrow` counts how often an offer falls, and how long it stays low although tenants need no more than before."""

from dataclasses import dataclass

MOST_S = 600.0
"""An offer that has been withheld for so long will not be back: the contender has learned otherwise."""


@dataclass(slots=True)
class Regrow:
    """One contender on one node; an offer that falls further before it is back is one fall."""

    falls: int = 0
    withheld_s: float = 0.0
    _full_cores: float | None = None
    """The offer before it fell; None while it has not."""
    _need_cores: float = 0.0
    """What the tenants wanted when that was offered."""
    _down_s: float = 0.0
    """How much of `withheld_s` is of the fall that is not over."""

    def pass_time(self, covers_s: float, wanted_cores: float) -> None:
        """Count the time before a frame, in which tenants wanted this much."""
        if self._full_cores is not None and wanted_cores <= self._need_cores:
            self.withheld_s += covers_s
            self._down_s += covers_s

    def offer(self, before_cores: float, now_cores: float, need_before_cores: float) -> None:
        """Take the next offer; `need_before_cores` is what the tenants wanted when the one before was made."""
        if self._full_cores is None and now_cores < before_cores:
            self.falls += 1
            self._full_cores, self._need_cores, self._down_s = before_cores, need_before_cores, 0.0
        elif self._full_cores is not None and (now_cores >= self._full_cores or self._down_s >= MOST_S):
            self._full_cores = None
