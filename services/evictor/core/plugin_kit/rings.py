"""What plugins remember from sample to sample: rings of figures that advance once a period."""

from collections.abc import Mapping
from dataclasses import dataclass, field

LOST_AFTER_PERIODS = 3
"""After so long without a step a row of steps is no row any more."""


@dataclass(frozen=True, slots=True)
class Rings:
    """The newest figures by name, oldest first, and when the last ones were taken."""

    figures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    stepped_at_s: float | None = None

    def after(self, now: Mapping[str, float], t_s: float, *, period_s: float, ring_size: int) -> "Rings":
        """One figure more for each name, if a period is over.

        A name without a figure loses its ring: only figures seen in a row count. After a long silence all do.
        """
        since_s = None if self.stepped_at_s is None else t_s - self.stepped_at_s
        if since_s is not None and since_s < period_s:
            return self
        lost = since_s is None or since_s > LOST_AFTER_PERIODS * period_s
        before: Mapping[str, tuple[float, ...]] = {} if lost else self.figures
        return Rings({name: (*before.get(name, ()), figure)[-ring_size:] for name, figure in sorted(now.items())}, t_s)

    def of(self, name: str) -> tuple[float, ...]:
        """Oldest first; nothing of a name that was not seen in the last step."""
        return self.figures.get(name, ())
