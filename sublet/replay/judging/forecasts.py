"""`Forecasts` counts what a policy claimed of the coming need, and in how many cases it came true."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from services.advisor.core.model.coverage import Coverage, newest_case


@dataclass(slots=True)
class ForecastCount:
    """The forecasts that looked equally far ahead; each case counts once, however old it is."""

    cases: int = 0
    claimed: float = 0.0
    """Sum of the claimed ratios."""
    covered: int = 0


@dataclass(slots=True)
class Forecasts:
    """By how far they looked ahead: the count; those of several nodes add up."""

    counts: dict[str, ForecastCount] = field(default_factory=dict)

    def observe(self, before: Mapping[str, Coverage], after: Mapping[str, Coverage]) -> None:
        """Count what has come true or not between two rounds."""
        for within, coverage in after.items():
            known = before.get(within)
            # The same object: nothing came true or failed to.
            if known is None or known is coverage:
                continue
            case = newest_case(known, coverage)
            if case is not None:
                self._add(within, ForecastCount(1, case.claimed_ratio, int(case.is_covered)))

    def add(self, other: Self) -> None:
        """Add another node's counts."""
        for within, count in other.counts.items():
            self._add(within, count)

    def _add(self, within: str, count: ForecastCount) -> None:
        mine = self.counts.setdefault(within, ForecastCount())
        mine.cases += count.cases
        mine.claimed += count.claimed
        mine.covered += count.covered

    def figures(self) -> list[dict[str, str | int | float]]:
        """The rows of the document, from the nearest to the farthest."""
        return [
            {
                "within": within,
                "cases": count.cases,
                "claimed_percent": round(100 * count.claimed / count.cases, 2),
                "covered_percent": round(100 * count.covered / count.cases, 2),
            }
            for within, count in self.counts.items()
        ]
