"""NUMA nodes that spend much of their time in the kernel (docs/facts/katalyst-eviction.md#numa-system-cpu)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from services.evictor.core.detectors.reclaimed.overcommit import Met
from services.evictor.core.plugin_kit.steps import NumaKey, RingSize, Samples, mean, newest, often_enough
from shared.core.decisions import Answer, Question, decision

SCOPE = "cpu.usage.sys.container"
CONDITION = "NumaSysCPUPressure/NoSchedule"


@dataclass(frozen=True, slots=True)
class Rule:
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


class SysStat(Question):
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
        """Both usage and the kernel's share must be over."""
        if self.cpu_hard and self.sys_hard:
            return "HARD_MET"
        return "SOFT_MET" if self.cpu_soft and self.sys_soft else "NOT_MET"


def stats(numas: Mapping[str, tuple[Sequence[float], Sequence[float]]], rule: Rule) -> list[SysStat]:
    """Nodes over both soft lines, from samples of CPU usage and of system time; the largest share first."""
    found = [_stat(int(numa), cpu, sys, rule) for numa, (cpu, sys) in numas.items() if cpu and sys]
    over = [stat for stat in found if stat.cpu_soft and stat.sys_soft]
    return sorted(over, key=lambda stat: (-stat.sys_ratio, stat.numa))


def _stat(numa: int, cpu: Sequence[float], sys: Sequence[float], rule: Rule) -> SysStat:
    cpu, sys = newest(cpu, rule.ring_size), newest(sys, rule.ring_size)
    both = min(len(cpu), len(sys))
    shares = [s / c if c > 0 else 0.0 for c, s in zip(cpu[-both:], sys[-both:], strict=True)]
    return SysStat(
        numa=numa,
        cpu_avg=mean(cpu) or 0.0,
        sys_avg=mean(sys) or 0.0,
        cpu_soft=rule.often(cpu, rule.cpu_soft_ratio),
        cpu_hard=rule.often(cpu, rule.cpu_hard_ratio),
        sys_soft=rule.often(shares, rule.sys_soft_ratio),
        sys_hard=rule.often(shares, rule.sys_hard_ratio),
    )


class SysSamples(Question):
    """Samples of one node, oldest first: CPU usage and, of it, system time."""

    cpu: Samples
    sys: Samples


class StatsQuestion(Question):
    """The rule and the nodes."""

    ring_size: RingSize = 4
    met_ratio: float = 0.7
    cpu_soft_ratio: float = 0.4
    cpu_hard_ratio: float = 0.5
    sys_soft_ratio: float = 0.4
    sys_hard_ratio: float = 0.5
    numas: dict[NumaKey, SysSamples]


class StatAnswer(Answer):
    """One node over both soft lines."""

    numa: int
    cpu_avg: float
    sys_avg: float
    cpu_soft: bool
    cpu_hard: bool
    sys_soft: bool
    sys_hard: bool


class StatsAnswer(Answer):
    """The largest share of system time first."""

    stats: list[StatAnswer]


@decision("numa_sys_cpu_stats", area="eviction_cpu_load", asks=StatsQuestion, answers=StatsAnswer)
def numa_sys_cpu_stats(question: StatsQuestion) -> StatsAnswer:
    """Which NUMA nodes spend much of their time in the kernel?"""
    rule = Rule(
        question.cpu_soft_ratio,
        question.cpu_hard_ratio,
        question.sys_soft_ratio,
        question.sys_hard_ratio,
        question.ring_size,
        question.met_ratio,
    )
    found = stats({numa: (of.cpu, of.sys) for numa, of in question.numas.items()}, rule)
    return StatsAnswer(stats=[StatAnswer(**stat.model_dump()) for stat in found])


class SysPod(Question):
    """A pod, its NUMA node (null: unknown), and what it uses."""

    name: str
    numa: int | None = None
    cpu_cores: float
    sys_cores: float

    @property
    def order(self) -> str:
        """The last word of every ordering."""
        return self.name


P = TypeVar("P", bound=SysPod)


def most_system_time(pods: Iterable[P], numa: int, min_sys_ratio: float) -> list[P]:
    """Pods of a node whose kernel share is at least so much, the most system time first."""
    there = [p for p in pods if p.numa == numa and p.cpu_cores > 0 and p.sys_cores / p.cpu_cores >= min_sys_ratio]
    return sorted(there, key=lambda pod: (-pod.sys_cores, pod.order))


class SysPressureQuestion(Question):
    """The nodes' stats, the largest share first, and the pods."""

    enabled: bool
    stats: list[SysStat]
    soft_threshold_ratio: float = 0.4
    hard_threshold_ratio: float = 0.5
    pods: list[SysPod]
    pod_min_sys_ratio: float = 0.3
    top_n: int = 1
    grace_period_s: float = -1


class SysPressureAnswer(Answer):
    """The verdict on the first node, and who goes."""

    met: Met
    scope: str | None = None
    condition: str | None = None
    threshold: float | None = None
    observed: float | None = None
    victims: list[str] = []
    deletion_grace_s: float | None = None


@decision("numa_sys_cpu_pressure", area="eviction_cpu_load", asks=SysPressureQuestion, answers=SysPressureAnswer)
def numa_sys_cpu_pressure(question: SysPressureQuestion) -> SysPressureAnswer:
    """Does a NUMA node spend too much time in the kernel, and who goes?"""
    if not question.enabled or not question.pods or not question.stats or question.stats[0].met == "NOT_MET":
        return SysPressureAnswer(met="NOT_MET")
    worst = question.stats[0]
    hard = worst.met == "HARD_MET"
    able = most_system_time(question.pods, worst.numa, question.pod_min_sys_ratio) if hard else []
    victims = [pod.name for pod in able[: max(0, question.top_n)]]
    return SysPressureAnswer(
        met=worst.met,
        scope=SCOPE,
        condition=CONDITION,
        threshold=question.hard_threshold_ratio if hard else question.soft_threshold_ratio,
        observed=worst.sys_ratio,
        victims=victims,
        deletion_grace_s=question.grace_period_s if victims and question.grace_period_s >= 0 else None,
    )
