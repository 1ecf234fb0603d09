"""The kinds `numa_cpu_pressure`, `numa_sys_cpu_stats` and `numa_sys_cpu_pressure`: CPU of one NUMA node."""

from dataclasses import asdict
from typing import Annotated

from pydantic import Field

from services.evictor.core.detectors.cpu import numa_sys
from services.evictor.core.detectors.cpu.numa import CONDITION, SCOPE, NumaBoundPod, NumaCpuRule, VictimChoice, overload
from services.evictor.core.detectors.cpu.numa_sys import NumaSysRule, NumaSysStat, SysTimePod, most_system_time, stats
from services.evictor.core.detectors.cpu.victim_scores import Filter, Scorer
from services.evictor.core.detectors.verdict import Met
from services.evictor.whatif.fields import NumaKey, RingSize, Samples
from shared.whatif.decisions import Answer, Question, decision


class NumaUsage(Question):
    """Samples of usage over size of one NUMA node, oldest first."""

    usage: Samples


class NumaCpuPod(Question):
    """A pod, its NUMA node, and samples of its usage as a ratio of that node, oldest first."""

    name: str
    owner_kind: str | None = None
    numa: int | None = None
    usage: Samples


class NumaCpuQuestion(Question):
    """The rule, the nodes and the pods."""

    enabled: bool
    threshold_ratio: float
    expand_ratio: Annotated[float, Field(gt=0)] = 1.1
    ring_size: RingSize = 4
    met_ratio: float = 0.7
    numas: dict[NumaKey, NumaUsage]
    pods: list[NumaCpuPod]
    filters: list[Filter] | None = None
    skipped_owner_kinds: list[str] | None = None
    scorers: list[Scorer] | None = None
    top_n: int = 1
    grace_period_s: float = -1


class NumaCpuAnswer(Answer):
    """Whether a node is overloaded, which, and who goes first. The condition comes only where every node is."""

    met: Met
    scope: str | None = None
    condition: str | None = None
    overloaded_numas: list[int] = []
    candidates: list[str] = []
    victims: list[str] = []
    deletion_grace_s: float | None = None


@decision("numa_cpu_pressure", area="eviction_cpu_load", asks=NumaCpuQuestion, answers=NumaCpuAnswer)
def numa_cpu_pressure(question: NumaCpuQuestion) -> NumaCpuAnswer:
    """Which NUMA nodes use too much CPU, and who goes?"""
    if not question.enabled:
        return NumaCpuAnswer(met="NOT_MET")
    found = overload(
        {numa: of.usage for numa, of in question.numas.items()},
        (NumaBoundPod(pod.name, pod.owner_kind, pod.numa, pod.usage, pod.name) for pod in question.pods),
        NumaCpuRule(question.threshold_ratio, question.expand_ratio, question.ring_size, question.met_ratio),
        VictimChoice(question.filters or (), question.skipped_owner_kinds or (), question.scorers or ()),
    )
    if found is None:
        return NumaCpuAnswer(met="NOT_MET")
    victims = [pod.of for pod, _ in found.ranked[: max(0, question.top_n)]]
    return NumaCpuAnswer(
        met="HARD_MET",
        scope=SCOPE,
        condition=CONDITION if found.all_numas else None,
        overloaded_numas=[int(numa) for numa in found.numas],
        candidates=[pod.of for pod in found.candidates],
        victims=victims,
        deletion_grace_s=question.grace_period_s if victims and question.grace_period_s >= 0 else None,
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
    rule = NumaSysRule(
        question.cpu_soft_ratio,
        question.cpu_hard_ratio,
        question.sys_soft_ratio,
        question.sys_hard_ratio,
        question.ring_size,
        question.met_ratio,
    )
    found = stats({numa: (of.cpu, of.sys) for numa, of in question.numas.items()}, rule)
    return StatsAnswer(stats=[StatAnswer(**asdict(stat)) for stat in found])


class SysStat(Question):
    """One node: means, and which lines were crossed often enough."""

    numa: int
    cpu_avg: float
    sys_avg: float
    cpu_soft: bool
    cpu_hard: bool
    sys_soft: bool
    sys_hard: bool


class SysPod(Question):
    """A pod, its NUMA node (null: unknown), and what it uses."""

    name: str
    numa: int | None = None
    cpu_cores: float
    sys_cores: float


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
    worst = NumaSysStat(**question.stats[0].model_dump()) if question.stats else None
    if not question.enabled or not question.pods or worst is None or worst.met == "NOT_MET":
        return SysPressureAnswer(met="NOT_MET")
    hard = worst.met == "HARD_MET"
    pods = (SysTimePod(pod.name, pod.numa, pod.cpu_cores, pod.sys_cores, pod.name) for pod in question.pods)
    able = most_system_time(pods, worst.numa, question.pod_min_sys_ratio) if hard else []
    victims = [pod.of for pod in able[: max(0, question.top_n)]]
    return SysPressureAnswer(
        met=worst.met,
        scope=numa_sys.SCOPE,
        condition=numa_sys.CONDITION,
        threshold=question.hard_threshold_ratio if hard else question.soft_threshold_ratio,
        observed=worst.sys_ratio,
        victims=victims,
        deletion_grace_s=question.grace_period_s if victims and question.grace_period_s >= 0 else None,
    )
