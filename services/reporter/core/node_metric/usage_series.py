"""Keep one figure over time in bounded memory: its mean in each slot, and how much of the slot was measured."""

from array import array
from dataclasses import dataclass

BYTES_PER_SLOT = 24
"""A number, a sum and a time, eight bytes each."""
COVERED_PART = 0.5
"""Least measured share of a window. Percentiles of less would describe another, shorter window."""


@dataclass(frozen=True, slots=True)
class WindowValues:
    """The means of a window's slots, ascending, each with the seconds that it covers."""

    values: tuple[tuple[float, float], ...]
    window_s: float

    @property
    def covered_s(self) -> float:
        """How much of the window was measured."""
        return sum(seconds for _, seconds in self.values)

    @property
    def complete(self) -> bool:
        """Whether at least half of the window was measured."""
        return self.covered_s >= self.window_s * COVERED_PART

    @property
    def mean(self) -> float | None:
        """By time; None where nothing was measured."""
        covered_s = self.covered_s
        return sum(value * seconds for value, seconds in self.values) / covered_s if covered_s else None

    def percentile(self, percent: int) -> float | None:
        """The least value that was not exceeded for so many percent of the time."""
        reached_s, wanted_s = 0.0, self.covered_s * percent / 100
        for value, seconds in self.values:
            reached_s += seconds
            # The sum of the same parts in another order may differ in its last digits.
            if reached_s >= wanted_s * (1 - 1e-9):
                return value
        return None


class UsageSeries:
    """One figure of the newest slots; older ones are forgotten."""

    __slots__ = ("_covered_s", "_number", "_slot_s", "_slots", "_sum")

    def __init__(self, slot_s: float, slots: int) -> None:
        self._slot_s, self._slots = slot_s, slots
        self._number, self._sum, self._covered_s = array("q"), array("d"), array("d")

    def __len__(self) -> int:
        """How many slots hold something."""
        return len(self._number)

    def add(self, value: float, at_s: float, covered_s: float) -> None:
        """Take a figure that held for so many seconds until now; times never fall."""
        number = int(at_s // self._slot_s)
        if self._number and number <= self._number[-1]:
            self._sum[-1] += value * covered_s
            self._covered_s[-1] += covered_s
            return
        self._number.append(number)
        self._sum.append(value * covered_s)
        self._covered_s.append(covered_s)
        gone = next(at for at, kept in enumerate(self._number) if kept > number - self._slots)
        if gone:
            del self._number[:gone], self._sum[:gone], self._covered_s[:gone]

    def mean(self, window_s: float, now_s: float) -> float | None:
        """Return the mean over the last seconds, weighted by time; None if nothing was measured."""
        first = (now_s - window_s) // self._slot_s
        total = covered_s = 0.0
        for number, value, seconds in zip(self._number, self._sum, self._covered_s, strict=True):
            if number > first:
                total += value
                covered_s += seconds
        return total / covered_s if covered_s else None

    def window(self, window_s: float, now_s: float) -> WindowValues:
        """Return what is known of the last seconds."""
        first = (now_s - window_s) // self._slot_s
        rows = zip(self._number, self._sum, self._covered_s, strict=True)
        return WindowValues(tuple(sorted((total / s, s) for number, total, s in rows if number > first)), window_s)
