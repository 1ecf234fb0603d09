"""Detects NUMA nodes that spend much of their time in the kernel (docs/facts/katalyst-eviction.md#numa-system-cpu)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from services.evictor.core.detectors.verdict import Met
from services.evictor.core.plugin_kit.sample_ring import mean, newest, often_enough

SCOPE = "cpu.usage.sys.container"
CONDITION = "NumaSysCPUPressure/NoSchedule"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NumaSysRule:
    """Lines for CPU usage of a node and for the kernel's share of it, and how many samples must be above them."""

    cpu_soft_ratio: float = 0.4
    cpu_hard_ratio: float = 0.5
    sys_soft_ratio: float = 0.4
    sys_hard_ratio: float = 0.5
    ring_size: int = 4
    met_ratio: float = 0.7

    def often(self, samples: Sequence[float], line: float) -> bool:
        """Whether enough samples of a full ring are above a line."""
        return often_enough(sum(sample > line for sample in samples), self.ring_size, self.met_ratio)


@dataclass(frozen=True, slots=True)
class NumaSysStat:
    """One node: means, and which lines were crossed often enough."""

    numa: int
    cpu_avg: float
    sys_avg: float
    cpu_soft: bool
    cpu_hard: bool
    sys_soft: bool
    sys_hard: bool

    @property
    def sys_ratio(self) -> float:
        """The kernel's share."""
        return self.sys_avg / self.cpu_avg if self.cpu_avg > 0 else 0.0

    @property
    def met(self) -> Met:
        """Both usage and the kernel's share must be above their lines."""
        if self.cpu_hard and self.sys_hard:
            return "HARD_MET"
        return "SOFT_MET" if self.cpu_soft and self.sys_soft else "NOT_MET"


def stats(numas: Mapping[str, tuple[Sequence[float], Sequence[float]]], rule: NumaSysRule) -> list[NumaSysStat]:
    """Nodes above both soft lines, from samples of CPU usage and of system time; the largest share first."""
    found = [_stat(int(numa), cpu, sys, rule) for numa, (cpu, sys) in numas.items() if cpu and sys]
    over = [stat for stat in found if stat.cpu_soft and stat.sys_soft]
    return sorted(over, key=lambda stat: (-stat.sys_ratio, stat.numa))


def _stat(numa: int, cpu: Sequence[float], sys: Sequence[float], rule: NumaSysRule) -> NumaSysStat:
    cpu, sys = newest(cpu, rule.ring_size), newest(sys, rule.ring_size)
    both = min(len(cpu), len(sys))
    shares = [s / c if c > 0 else 0.0 for c, s in zip(cpu[-both:], sys[-both:], strict=True)]
    return NumaSysStat(
        numa=numa,
        cpu_avg=mean(cpu) or 0.0,
        sys_avg=mean(sys) or 0.0,
        cpu_soft=rule.often(cpu, rule.cpu_soft_ratio),
        cpu_hard=rule.often(cpu, rule.cpu_hard_ratio),
        sys_soft=rule.often(shares, rule.sys_soft_ratio),
        sys_hard=rule.often(shares, rule.sys_hard_ratio),
    )


@dataclass(frozen=True, slots=True)
class SysTimePod(Generic[T]):
    """A pod, its NUMA node (None: unknown), and the CPU that it uses, in all and in the kernel."""

    name: str
    """Orders pods of equal system time."""
    numa: int | None
    cpu_cores: float
    sys_cores: float
    of: T
    """The caller's object."""


def most_system_time(pods: Iterable[SysTimePod[T]], numa: int, min_sys_ratio: float) -> list[SysTimePod[T]]:
    """Pods of a node whose kernel share is at least so much, the most system time first."""
    there = [p for p in pods if p.numa == numa and p.cpu_cores > 0 and p.sys_cores / p.cpu_cores >= min_sys_ratio]
    return sorted(there, key=lambda pod: (-pod.sys_cores, pod.name))
