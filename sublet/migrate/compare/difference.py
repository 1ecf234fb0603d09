"""`Comparison` collects what both agents would give at the same moments, and reports the differences. Pure."""

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Quantity = Literal["cpu_cores", "offer_cpu_millis", "offer_memory_bytes"]
"""cpu_cores: what best-effort pods may use together. offer: what they may ask for on the Node."""
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
Wish = Mapping[Quantity, float]
"""What is known at one moment; what is not known is left out."""
MAX_MOMENTS = 200_000
"""Two days, second by second; later moments are counted and not kept."""
SAME = 1e-9
"""Two figures that differ by no more than this part are the same."""


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """One quantity over all moments at which both agents had a figure for it."""

    quantity: Quantity
    moments: int
    theirs_mean: float
    ours_mean: float
    mean: float
    """Mean of ours less theirs."""
    p95: float
    """95 of 100 differences are no larger than this, whatever their sign."""
    lowest: float
    """Ours less theirs where we gave least in comparison."""
    highest: float
    less: int
    """Moments at which ours is less."""
    more: int


@dataclass(slots=True)
class Comparison:
    """All moments, of each quantity those that both have said."""

    moments: int = 0
    one_sided: int = 0
    """Moments at which at least one quantity was not known to both."""
    _theirs: dict[Quantity, "array[float]"] = field(default_factory=dict)
    _ours: dict[Quantity, "array[float]"] = field(default_factory=dict)

    def add(self, theirs: Wish, ours: Wish) -> None:
        """Take one moment."""
        self.moments += 1
        both = [name for name in QUANTITIES if _known(theirs, name) and _known(ours, name)]
        self.one_sided += len(both) < len(QUANTITIES)
        if self.moments > MAX_MOMENTS:
            return
        for name in both:
            self._theirs.setdefault(name, array("d")).append(theirs[name])
            self._ours.setdefault(name, array("d")).append(ours[name])

    def rows(self) -> list[DifferenceRow]:
        """A row for each quantity that both have said at least once."""
        return [_row(name, self._theirs[name], self._ours[name]) for name in QUANTITIES if name in self._theirs]


def _known(wish: Wish, name: Quantity) -> bool:
    return name in wish and math.isfinite(wish[name])


def _row(quantity: Quantity, theirs: "array[float]", ours: "array[float]") -> DifferenceRow:
    differences = [one - other for one, other in zip(ours, theirs, strict=True)]
    sizes = sorted(map(abs, differences))
    marks = [_sign(one, other) for one, other in zip(ours, theirs, strict=True)]
    count = len(differences)
    return DifferenceRow(
        quantity,
        count,
        math.fsum(theirs) / count,
        math.fsum(ours) / count,
        math.fsum(differences) / count,
        sizes[max(0, math.ceil(0.95 * count) - 1)],
        min(differences),
        max(differences),
        marks.count(-1),
        marks.count(1),
    )


def _sign(ours: float, theirs: float) -> int:
    near = abs(ours - theirs) <= SAME * max(abs(ours), abs(theirs), 1.0)
    return 0 if near else 1 if ours > theirs else -1
