"""Rings of samples that plugins remember: they advance once a period, however many samples come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.evictor.core.plugin import View

LOST_AFTER_PERIODS = 3
"""After so many periods without a step the samples before are not in a row with those after it."""


def are_lost(since_s: float | None, period_s: float, max_gap_s: float) -> bool:
    """Return whether the steps before this one are too old to be consecutive with it.

    Periods shorter than the time between two samples, which grows while the node rests, are no reason.
    """
    return since_s is None or since_s > max(LOST_AFTER_PERIODS * period_s, max_gap_s)


@dataclass(frozen=True, slots=True)
class Rings:
    """The newest figures by name, oldest first, and when the last ones were added."""

    figures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    stepped_at_s: float | None = None

    def after(self, now: Mapping[str, float], view: View, *, period_s: float, ring_size: int) -> "Rings":
        """The rings with one more figure for each name, if a period is over.

        A name without a figure loses its ring, since only figures seen in a row count; after a long gap all do.
        """
        since_s = None if self.stepped_at_s is None else view.t_s - self.stepped_at_s
        if since_s is not None and since_s < period_s:
            return self
        before: Mapping[str, tuple[float, ...]] = (
            {} if are_lost(since_s, period_s, view.max_gap_s) else self.figures
        )  # fmt: skip
        figures = {name: (*before.get(name, ()), figure)[-ring_size:] for name, figure in sorted(now.items())}
        return Rings(figures, view.t_s)

    def of(self, name: str) -> tuple[float, ...]:
        """Return the figures of a name, oldest first; empty for a name that the last step did not have."""
        return self.figures.get(name, ())


def newest(samples: Sequence[float], ring_size: int) -> Sequence[float]:
    """The samples that a ring of that size holds."""
    return samples[-ring_size:]


def mean(samples: Sequence[float]) -> float | None:
    """The mean; None of no samples, since absent is not zero."""
    return sum(samples) / len(samples) if samples else None


def often_enough(count: int, ring_size: int, met_ratio: float) -> bool:
    """Whether so many samples of a full ring are enough: while it is not full, the missing ones count as not met."""
    return count / ring_size >= met_ratio
