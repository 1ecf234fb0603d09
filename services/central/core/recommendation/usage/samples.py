"""Figures of one container become samples: CPU by the minute, memory by the hour's peak
(docs/facts/katalyst-recommendation.md#histogram)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from services.central.core.recommendation.bounds import UsagePercentiles
from services.central.core.recommendation.histogram import BucketScheme, UsageHistogram

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
CPU_CORES = BucketScheme(first=0.01, most=1000.0, half_life_s=DAY_S)
MEMORY_BYTES = BucketScheme(first=1e7, most=1e12, half_life_s=DAY_S)
MIN_CPU_WEIGHT = 0.1
"""An idle minute counts a little; otherwise a resting workload would have no history."""
LOWER, TARGET, UPPER = 0.5, 0.9, 0.95
MAX_PODS = 1000
"""Of one workload that are followed at a time; what further pods use is like what these use."""


@dataclass(frozen=True, slots=True)
class OpenMinute:
    """Use of a pod's container in an unfinished minute, in cores."""

    minute: int
    total: float
    readings: int


@dataclass(frozen=True, slots=True)
class OpenHour:
    """The most memory that a pod's container had in an hour that is not over."""

    hour: int
    peak_bytes: float


class ContainerUsage:
    """Histograms of one container over all pods of its workload, and the samples that are not complete yet."""

    def __init__(self) -> None:
        self.cpu = UsageHistogram.empty(CPU_CORES, 0.0)
        self.memory = UsageHistogram.empty(MEMORY_BYTES, 0.0)
        self.minutes: dict[str, OpenMinute] = {}
        self.hours: dict[str, OpenHour] = {}
        """Both by the pod's UID."""
        self.cpu_samples = 0
        self.first_s: float | None = None
        self.last_s: float | None = None
        """When anything was seen of it."""

    @property
    def history_s(self) -> float:
        """From the first reading to the last; 0 without any."""
        return 0.0 if self.first_s is None or self.last_s is None else self.last_s - self.first_s

    def see(self, uid: str, at_s: float, *, cpu_cores: float | None, memory_bytes: float | None) -> None:
        """Add a reading of one pod; None: unknown, which is not a use of 0."""
        known = uid in self.hours or uid in self.minutes
        if (cpu_cores is None and memory_bytes is None) or (
            not known and max(len(self.hours), len(self.minutes)) >= MAX_PODS
        ):
            return
        self.first_s = at_s if self.first_s is None else min(self.first_s, at_s)
        self.last_s = at_s if self.last_s is None else max(self.last_s, at_s)
        if cpu_cores is not None:
            self._see_cpu(uid, at_s, cpu_cores)
        if memory_bytes is not None:
            self._see_memory(uid, at_s, memory_bytes)

    def _see_cpu(self, uid: str, at_s: float, cores: float) -> None:
        minute, of = int(at_s // MINUTE_S), self.minutes.get(uid)
        if of is not None and minute > of.minute:
            self._close_minute(of)
        if of is None or minute > of.minute:
            self.minutes[uid] = OpenMinute(minute, cores, 1)
        elif minute == of.minute:  # what comes late, of a minute that is over, would be a sample of its own
            self.minutes[uid] = OpenMinute(minute, of.total + cores, of.readings + 1)

    def _see_memory(self, uid: str, at_s: float, size_bytes: float) -> None:
        hour, of = int(at_s // HOUR_S), self.hours.get(uid)
        if of is not None and hour > of.hour:
            self._close_hour(of)
        if of is None or hour > of.hour:
            self.hours[uid] = OpenHour(hour, size_bytes)
        elif hour == of.hour:
            self.hours[uid] = OpenHour(hour, max(of.peak_bytes, size_bytes))

    def _close_minute(self, of: OpenMinute) -> None:
        cores = of.total / of.readings
        # A busy minute counts for more: a request is for those, and a service rests at night.
        self.cpu = self.cpu.add(cores, of.minute * MINUTE_S, max(cores, MIN_CPU_WEIGHT))
        self.cpu_samples += 1

    def _close_hour(self, of: OpenHour) -> None:
        self.memory = self.memory.add(of.peak_bytes, of.hour * HOUR_S)

    def retain(self, uids: Collection[str]) -> None:
        """Complete what was seen of pods that are gone."""
        for uid in self.minutes.keys() - set(uids):
            self._close_minute(self.minutes.pop(uid))
        for uid in self.hours.keys() - set(uids):
            self._close_hour(self.hours.pop(uid))

    def cpu_cores(self) -> UsagePercentiles | None:
        """CPU over all complete minutes; None without one."""
        return _percentiles(self.cpu)

    def memory_bytes(self) -> UsagePercentiles | None:
        """Memory over all hours, those that are not over included: their peaks can only rise."""
        found = self.memory
        for of in self.hours.values():
            found = found.add(of.peak_bytes, of.hour * HOUR_S)
        return _percentiles(found)


def _percentiles(histogram: UsageHistogram) -> UsagePercentiles | None:
    found = [histogram.percentile(part) for part in (LOWER, TARGET, UPPER)]
    values = [one.value for one in found if one is not None]
    return UsagePercentiles(*values) if len(values) == len(found) else None


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """A container's known use, from which the recommendation is computed."""

    history_s: float
    samples: int
    age_s: float | None
    """Since the last reading; None: there was none."""
    cpu_cores: UsagePercentiles | None
    memory_bytes: UsagePercentiles | None


def summary(usage: ContainerUsage | None, now_s: float) -> UsageSummary:
    """Return what is known now; None: it was never observed."""
    if usage is None:
        return UsageSummary(0.0, 0, None, None, None)
    age_s = None if usage.last_s is None else max(0.0, now_s - usage.last_s)
    return UsageSummary(usage.history_s, usage.cpu_samples, age_s, usage.cpu_cores(), usage.memory_bytes())


Usages = Mapping[str, ContainerUsage]
"""By the container's name."""
