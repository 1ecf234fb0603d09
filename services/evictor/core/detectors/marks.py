"""Marks on a whole, in percent: where eviction starts, and down to where it frees.

Facts: docs/facts/koordinator-evict.md#memory-by-use.
"""

from dataclasses import dataclass

BUFFER_PERCENT = 2
"""Without an explicit lower mark, this much below the threshold is freed, so that it is not met again at once."""


@dataclass(frozen=True, slots=True)
class EvictionMarks:
    """Two marks in whole percent."""

    threshold_percent: int
    lower_percent: int | None = None

    @property
    def target_percent(self) -> int:
        """Down to where is freed."""
        return self.threshold_percent - BUFFER_PERCENT if self.lower_percent is None else self.lower_percent

    @property
    def usable(self) -> bool:
        """Whether they can be followed: a threshold below 0 never ends, and a target at the threshold frees nothing."""
        return self.threshold_percent >= 0 and self.target_percent < self.threshold_percent

    def met(self, amount: int, whole: int) -> bool:
        """Whether an amount has reached the threshold."""
        return amount * 100 >= self.threshold_percent * whole

    def target(self, whole: int) -> int:
        """The amount down to which is freed."""
        return max(0, self.target_percent) * whole // 100
