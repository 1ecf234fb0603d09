"""Controllers correct a size by indicators against their targets (docs/facts/katalyst-cpu.md#rama).

Every indicator has a controller. Its error is ln(current / target): twice the target weighs as much as half of it.
Inside the deadband nothing is corrected; outside, corrections add up for as long as the size they started from stays.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gains:
    """How strongly one indicator corrects.

    `kpp` and `kpn` weigh the error above and below the target, `kdp` and `kdn` its change where that asks for more and
    for less. A correction stays within the adjustments (cores); the deadband is a part of the target either way.
    """

    kpp: float
    kpn: float
    kdp: float = 0.0
    kdn: float = 0.0
    adjustment_upper: float = 10.0
    adjustment_lower: float = -2.0
    deadband_upper: float = 0.0
    deadband_lower: float = 0.0


@dataclass(frozen=True, slots=True)
class Controller:
    """The correction of one indicator so far (cores), the size from which it started, and its last error; None
    before the first."""

    size_cores: float | None = None
    adjustment_cores: float = 0.0
    error: float | None = None


@dataclass(frozen=True, slots=True)
class Indicator:
    """One figure against its target (above 0), in the same unit."""

    current: float
    target: float
    gains: Gains


@dataclass(frozen=True, slots=True)
class SizeRange:
    """The size in force and where the next one may lie, in cores."""

    current_cores: float
    lower_cores: float
    upper_cores: float

    def clamp(self, cores: float) -> float:
        """The nearest size inside the range."""
        return min(max(cores, self.lower_cores), self.upper_cores)


NO_CONTROLLERS: Mapping[str, Controller] = {}


def corrected(
    indicators: Mapping[str, Indicator],
    sizes: SizeRange,
    before: Mapping[str, Controller] = NO_CONTROLLERS,
    weight: float = 1.0,
) -> tuple[dict[str, Controller], dict[str, float]]:
    """The controllers after this round, and by indicator the size (cores) that it asks for.

    `weight` is the part of a whole step that this round counts, where rounds come more often than steps are meant to.
    """
    after = {
        name: _step(before.get(name, Controller()), indicator, sizes, weight)
        for name, indicator in sorted(indicators.items())
    }
    return after, {name: sizes.clamp(sizes.current_cores + one.adjustment_cores) for name, one in after.items()}


def _step(before: Controller, indicator: Indicator, sizes: SizeRange, weight: float) -> Controller:
    gains = indicator.gains
    error = math.log(indicator.current) - math.log(indicator.target) if indicator.current > 0 else -math.inf
    # Once the size has moved, what was added up for the old one is part of it.
    adjustment = before.adjustment_cores if before.size_cores == sizes.current_cores else 0.0
    low = (1 - gains.deadband_lower) * indicator.target
    high = (1 + gains.deadband_upper) * indicator.target
    if not low <= indicator.current <= high:
        adjustment += weight * _correction(gains, error, before.error, sizes.upper_cores)
    adjustment = min(max(adjustment, gains.adjustment_lower), gains.adjustment_upper)
    # Remember only what can be applied: at a bound, the sum would otherwise grow without limit.
    adjustment = sizes.clamp(sizes.current_cores + adjustment) - sizes.current_cores
    return Controller(sizes.current_cores, adjustment, error)


def _correction(gains: Gains, error: float, before: float | None, upper_cores: float) -> float:
    """Return the correction. An infinite error (the figure is 0) asks for the largest reduction that the limits
    allow; it has no rate of change."""
    if math.isinf(error):
        return -math.inf if gains.kpn > 0 else 0.0
    change = (gains.kpp if error >= 0 else gains.kpn) * upper_cores * error
    if before is None or math.isinf(before):
        return change
    rate = abs(error) - abs(before)
    more = (error >= 0) == (rate >= 0)
    return change + (gains.kdp if more else -gains.kdn) * abs(rate)
