"""What an over-committed node advertises (docs/facts/katalyst-overcommit.md#figures)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Amounts:
    """Of one resource of a node: milli-cores or bytes."""

    allocatable: int
    capacity: int

    def times(self, ratio: float, *, bound: int = 0) -> "Amounts":
        """Multiply both by the ratio, truncated, except the bound part, and at most all that is allocatable."""
        kept = min(max(0, bound), self.allocatable)
        return Amounts(*(int((amount - kept) * ratio) + kept for amount in (self.allocatable, self.capacity)))
