"""`Coverage` compares what forecasts claimed with what came true."""

from dataclasses import dataclass
from typing import NamedTuple


class Coverage(NamedTuple):
    """What was claimed and what came true, with the newest cases weighing most; sums of weights."""

    cases: float = 0.0
    claimed: float = 0.0
    covered: float = 0.0

    def observe(self, claimed_ratio: float, is_covered: bool, aged_half_lives: float) -> "Coverage":
        """With one more case."""
        kept = 2.0**-aged_half_lives
        return Coverage(kept * self.cases + 1, kept * self.claimed + claimed_ratio, kept * self.covered + is_covered)

    @property
    def claimed_ratio(self) -> float | None:
        """Part of the cases that were claimed to be covered; None without any."""
        return self.claimed / self.cases if self.cases else None

    @property
    def covered_ratio(self) -> float | None:
        """Part of the cases that were."""
        return self.covered / self.cases if self.cases else None


@dataclass(frozen=True, slots=True)
class CoverageCase:
    """One case: what was claimed, and whether it came true."""

    claimed_ratio: float
    is_covered: bool


def newest_case(before: Coverage, after: Coverage) -> CoverageCase | None:
    """Return the case by which a later coverage differs from an earlier one; None if there is none."""
    if after is before or after == before:
        return None
    kept = (after.cases - 1) / before.cases if before.cases else 0.0
    return CoverageCase(after.claimed - kept * before.claimed, after.covered - kept * before.covered > 1 / 2)
