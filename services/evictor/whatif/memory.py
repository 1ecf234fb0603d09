"""The kinds `memory_pressure`, `numa_memory_pressure` and `system_memory_pressure`: is the node short of memory?"""

from typing import Annotated, Literal

from pydantic import Field

from services.evictor.core.detectors.memory import combined, numa, system
from services.evictor.core.detectors.memory.combined import Action
from services.evictor.whatif.fields import InTime
from shared.whatif.decisions import Answer, Question, decision


class MemoryStep(Question):
    """Readings at one moment."""

    t_s: float
    system_free_bytes: int
    numa_free_bytes: dict[str, int | None]
    kswapd_steal_pages: int


class MemoryQuestion(Question):
    """The machine, the thresholds, and what was read step by step."""

    period_s: Annotated[float, Field(gt=0)]
    watermark_scale_factor: int
    system_total_bytes: int
    numa_total_bytes: dict[str, int]
    numa_free_below_watermark_times: int = 4
    kswapd_rate_pages_per_s: float = 2000
    kswapd_exceed_times: int = 4
    kswapd_steal_pages_before: int | None = None
    numa_level: bool = True
    system_level: bool = True
    steps: Annotated[list[MemoryStep], InTime]


class MemoryVerdict(Answer):
    """What one step requests."""

    met: Literal["NOT_MET", "HARD_MET"]
    scope: str | None
    condition: str | None
    numa_actions: dict[str, Action]
    system_action: Action


class MemoryAnswer(Answer):
    """One verdict for each step."""

    steps: list[MemoryVerdict]


@decision("memory_pressure", area="eviction_memory", asks=MemoryQuestion, answers=MemoryAnswer)
def memory_pressure(question: MemoryQuestion) -> MemoryAnswer:
    """Is the node short of memory, step by step: NUMA watermarks, system watermark, kswapd?"""
    limits = combined.CombinedLimits(
        question.numa_free_below_watermark_times,
        question.kswapd_rate_pages_per_s,
        question.kswapd_exceed_times,
        question.numa_level,
        question.system_level,
    )
    counters = combined.RowCounters(kswapd_steal_pages=question.kswapd_steal_pages_before)
    verdicts = []
    for step in question.steps:
        reading = _combined_reading(question, step)
        counters = counters.counted(reading, limits, question.period_s)
        actions = combined.judge(counters, reading, limits)
        verdicts.append(
            MemoryVerdict(
                met="HARD_MET" if actions.met else "NOT_MET",
                scope=combined.SCOPE if actions.met else None,
                condition=actions.condition,
                numa_actions=dict(actions.numa_actions),
                system_action=actions.system_action,
            )
        )
    return MemoryAnswer(steps=verdicts)


def _combined_reading(question: MemoryQuestion, step: MemoryStep) -> combined.CombinedReading:
    return combined.CombinedReading(
        question.watermark_scale_factor,
        question.system_total_bytes,
        step.system_free_bytes,
        question.numa_total_bytes,
        {numa: free for numa, free in step.numa_free_bytes.items() if free is not None},
        step.kswapd_steal_pages,
    )


class Watermarks(Question):
    """Already adjusted."""

    min_bytes: Annotated[int, Field(ge=0)]
    low_bytes: Annotated[int, Field(ge=0)]


class NumaMemoryStep(Question):
    """Free memory at one moment; null is unknown."""

    t_s: float
    numa_free_bytes: dict[str, int | None]


class NumaMemoryQuestion(Question):
    """Watermarks, patience, and free memory step by step."""

    watermarks: dict[str, Watermarks]
    times_threshold: int = 12
    times_reclaimed_threshold: int = 6
    fast_eviction_wait_cycles: int = 1
    steps: Annotated[list[NumaMemoryStep], InTime]


class NumaMemoryVerdict(Answer):
    """What one step requests."""

    met: Literal["NOT_MET", "HARD_MET"]
    scope: str | None
    condition: str | None = None
    numa_actions: dict[str, Action]


class NumaMemoryAnswer(Answer):
    """One verdict for each step."""

    steps: list[NumaMemoryVerdict]


@decision("numa_memory_pressure", area="eviction_memory", asks=NumaMemoryQuestion, answers=NumaMemoryAnswer)
def numa_memory_pressure(question: NumaMemoryQuestion) -> NumaMemoryAnswer:
    """Which NUMA nodes are below their watermarks, step by step, and what that asks for?"""
    marks = {name: numa.Marks(mark.min_bytes, mark.low_bytes) for name, mark in question.watermarks.items()}
    patience = numa.Patience(
        question.times_threshold, question.times_reclaimed_threshold, question.fast_eviction_wait_cycles
    )
    counts: dict[str, int] = {}
    verdicts = []
    for moment in question.steps:
        counts, actions = numa.judge(counts, moment.numa_free_bytes, marks, patience)
        met = any(action != "noop" for action in actions.values())
        scope = numa.SCOPE if met else None
        verdicts.append(NumaMemoryVerdict(met="HARD_MET" if met else "NOT_MET", scope=scope, numa_actions=actions))
    return NumaMemoryAnswer(steps=verdicts)


class StallQuestion(Question):
    """Limits of the stall shares; missing ones have their default."""

    workload_threshold_percent: int = 15
    pods_mean_threshold_percent: int = 4
    pod_threshold_percent: int = 1
    min_pods: int = 3
    duration_s: float = 15.0


class SystemMemoryStep(Question):
    """Readings at one moment."""

    t_s: float
    system_free_bytes: int
    kswapd_steal_pages: int | None = None
    workload_some_avg10_percent: float | None = None
    pods_some_avg10_percent: list[float] | None = None


class SystemMemoryQuestion(Question):
    """The machine, the thresholds, and what was read step by step. Without `psi` stall shares are not looked at."""

    system_total_bytes: int
    watermark_scale_factor: int
    minimum_free_bytes: int = 0
    psi: StallQuestion | None = None
    kswapd_rate_pages_per_s: float = 2000
    kswapd_exceed_duration_s: float = 120
    steps: Annotated[list[SystemMemoryStep], InTime]


class SystemMemoryVerdict(Answer):
    """What one step requests."""

    met: Literal["NOT_MET", "HARD_MET"]
    scope: str | None
    condition: str | None
    system_action: Action


class SystemMemoryAnswer(Answer):
    """One verdict for each step."""

    steps: list[SystemMemoryVerdict]


@decision("system_memory_pressure", area="eviction_memory", asks=SystemMemoryQuestion, answers=SystemMemoryAnswer)
def system_memory_pressure(question: SystemMemoryQuestion) -> SystemMemoryAnswer:
    """Is the node short of memory, step by step: free memory, stall shares, kswapd?"""
    limits = system.SystemLimits(
        question.minimum_free_bytes,
        _stall_limits(question.psi),
        question.kswapd_rate_pages_per_s,
        question.kswapd_exceed_duration_s,
    )
    total, scale = question.system_total_bytes, question.watermark_scale_factor
    clocks, verdicts = system.ShortageClocks(), []
    for step in question.steps:
        clocks, action = system.judge(clocks, _system_reading(step), total, scale, limits)
        met = action != "noop"
        verdicts.append(
            SystemMemoryVerdict(
                met="HARD_MET" if met else "NOT_MET",
                scope=system.SCOPE if met else None,
                condition=combined.CONDITION if met else None,
                system_action=action,
            )
        )
    return SystemMemoryAnswer(steps=verdicts)


def _stall_limits(psi: StallQuestion | None) -> system.StallLimits | None:
    if psi is None:
        return None
    return system.StallLimits(
        psi.workload_threshold_percent,
        psi.pods_mean_threshold_percent,
        psi.pod_threshold_percent,
        psi.min_pods,
        psi.duration_s,
    )


def _system_reading(step: SystemMemoryStep) -> system.SystemReading:
    return system.SystemReading(
        step.t_s,
        step.system_free_bytes,
        step.kswapd_steal_pages,
        step.workload_some_avg10_percent,
        step.pods_some_avg10_percent,
    )
