"""Records the past use of pods as histograms whose older samples weigh less, and derives their peaks.

A histogram has a fixed number of buckets, each a twentieth wider than the one before, and a peak is the upper bound of
its bucket. Weights grow with observations and not with the clock, so nothing ages while nothing is observed.

Facts: docs/facts/koordinator-batch.md#prod-reclaimable.
"""

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

GROWTH = 1.05
CPU_FIRST_MILLIS, MEMORY_FIRST_BYTES = 25.0, float(5 << 20)
CPU_BUCKETS, MEMORY_BUCKETS = 220, 290
"""Up to 22,000 cores and 130 TiB: the last bucket has no upper bound, and no machine comes near it."""
CPU_HALF_LIFE_MINUTES, MEMORY_HALF_LIFE_MINUTES = 12 * 60, 24 * 60
CPU_PEAK_SHARE, MEMORY_PEAK_SHARE = 0.95, 0.98
MINUTE_S = 60.0
FORGET_AFTER_S = 1800.0
MOST_MODELS = 1024
"""Further pods have no past, and lend nothing; a kubelet runs at most a few hundred."""
_LARGEST_EXPONENT = 100


@dataclass(frozen=True, slots=True)
class UsedAmounts:
    """Use at one moment, in milli-cores and bytes."""

    cpu_millis: int
    memory_bytes: int


@dataclass(slots=True)
class PeakHistogram:
    """How often how much was used; the weight of a sample halves with every half-life."""

    first: float
    half_life_minutes: int
    weights: "array[float]"
    reference_minute: int = 0

    def add(self, value: float, minute: int) -> None:
        """Count a sample of the minute with this number; numbers only rise."""
        exponent = (minute - self.reference_minute) / self.half_life_minutes
        if exponent > _LARGEST_EXPONENT:
            halved = int(exponent)
            self.weights = array("d", (math.ldexp(weight, -halved) for weight in self.weights))
            self.reference_minute += halved * self.half_life_minutes
            exponent -= halved
        self.weights[self._bucket(value)] += 2.0**exponent

    def peak(self, share: float) -> float | None:
        """The upper bound of what was used for this share of the time; None without a sample."""
        least, counted = math.fsum(self.weights) * share, 0.0
        if least <= 0:
            return None
        for number, weight in enumerate(self.weights):
            counted += weight
            # Sums in another order may differ in the last digit.
            if counted >= least * (1 - 1e-12):
                return self._start(number + 1)
        return None

    def _bucket(self, value: float) -> int:
        number = math.floor(math.log(max(0.0, value) * (GROWTH - 1) / self.first + 1, GROWTH))
        return min(number, len(self.weights) - 1)

    def _start(self, number: int) -> float:
        return float(self.first * (GROWTH**number - 1) / (GROWTH - 1))


def _cpu() -> PeakHistogram:
    return PeakHistogram(CPU_FIRST_MILLIS, CPU_HALF_LIFE_MINUTES, array("d", bytes(8 * CPU_BUCKETS)))


def _memory() -> PeakHistogram:
    return PeakHistogram(MEMORY_FIRST_BYTES, MEMORY_HALF_LIFE_MINUTES, array("d", bytes(8 * MEMORY_BUCKETS)))


@dataclass(slots=True)
class UsageModel:
    """The past of one pod, or of many together."""

    minutes: int = 0
    """Minutes that it was observed for."""
    cpu: PeakHistogram = field(default_factory=_cpu)
    memory: PeakHistogram = field(default_factory=_memory)
    seen_s: float = 0.0
    _peak: UsedAmounts | None = field(default=None, compare=False)
    """Asked for with every sample, and another one only once a minute."""

    def add(self, used: UsedAmounts, now_s: float) -> None:
        """Count one minute more, by the most that was used in it."""
        self.cpu.add(used.cpu_millis, self.minutes)
        self.memory.add(used.memory_bytes, self.minutes)
        self.minutes += 1
        self._peak = None
        self.seen_s = now_s

    def peak(self) -> UsedAmounts | None:
        """Return its peak for nearly all of the time; None before the first minute is over."""
        if self._peak is None:
            cpu_millis, memory_bytes = self.cpu.peak(CPU_PEAK_SHARE), self.memory.peak(MEMORY_PEAK_SHARE)
            if cpu_millis is None or memory_bytes is None:
                return None
            self._peak = UsedAmounts(math.ceil(cpu_millis), math.ceil(memory_bytes))
        return self._peak


class UsageHistory:
    """The past of everything that has a name, a minute at a time."""

    def __init__(self) -> None:
        self.models: dict[str, UsageModel] = {}
        self._largest: dict[str, UsedAmounts] = {}
        self._minute_began_s: float | None = None

    def observe(self, used: Mapping[str, UsedAmounts], now_s: float) -> None:
        """Take what is used now; once a minute is over, its largest amounts are counted."""
        if self._minute_began_s is not None and now_s - self._minute_began_s > FORGET_AFTER_S:
            # Nothing was observed for this long: an old minute must not count as a current one.
            self._forget(now_s)
            self._largest, self._minute_began_s = {}, None
        if self._minute_began_s is None:
            self._minute_began_s = now_s
        if now_s - self._minute_began_s >= MINUTE_S:
            self._count(now_s)
            self._largest, self._minute_began_s = {}, now_s
        for name, now in used.items():
            before = self._largest.get(name, now)
            self._largest[name] = UsedAmounts(
                max(before.cpu_millis, now.cpu_millis), max(before.memory_bytes, now.memory_bytes)
            )

    def peak(self, name: str, *, least_minutes: float) -> UsedAmounts | None:
        """Return its peak; None if it has not been observed for this long."""
        model = self.models.get(name)
        return None if model is None or model.minutes < least_minutes else model.peak()

    def _count(self, now_s: float) -> None:
        for name, used in self._largest.items():
            if name in self.models or len(self.models) < MOST_MODELS:
                self.models.setdefault(name, UsageModel()).add(used, now_s)
        self._forget(now_s)

    def _forget(self, now_s: float) -> None:
        gone = [name for name, model in self.models.items() if now_s - model.seen_s > FORGET_AFTER_S]
        for name in gone:
            del self.models[name]
