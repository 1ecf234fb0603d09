"""The kinds `be_satisfaction_release` and `be_cpu_victim_order`: best-effort pods that starve for CPU.

Facts: docs/facts/koordinator-evict.md#cpu-by-satisfaction.
"""

from typing import Literal

from services.evictor.core.detectors.cpu.satisfaction import (
    USAGE_THRESHOLD_PERCENT,
    BestEffortCpu,
    SatisfactionRule,
    StarvingPod,
    in_order,
    millis_to_free,
)
from services.evictor.whatif.fields import Int64
from shared.core.pods.koord_qos import KoordQos
from shared.whatif.decisions import Answer, Question, decision

LEAST_ALLOCATABLE_MILLIS = 1
"""An allocatable of 0 counts as this: nothing left for best-effort pods is the strongest reason, not none."""


class BestEffortSamples(Question):
    """Means over some samples of the best-effort pods."""

    sample_count: Int64
    be_real_limit_millicpu: Int64
    be_used_millicpu: Int64
    be_request_millicpu: Int64


class SatisfactionQuestion(Question):
    """The rule's bounds, and what was measured over the window and now."""

    satisfaction_lower_percent: Int64
    satisfaction_upper_percent: Int64
    be_usage_threshold_percent: Int64 = USAGE_THRESHOLD_PERCENT
    policy: Literal["evictByRealLimit", "evictByAllocatable"] = "evictByRealLimit"
    window: BestEffortSamples | None = None
    current: BestEffortSamples | None = None
    batch_cpu_allocatable_millicpu: Int64 | None = None

    @property
    def rule(self) -> SatisfactionRule:
        """As the detector takes it."""
        return SatisfactionRule(
            self.satisfaction_lower_percent, self.satisfaction_upper_percent, self.be_usage_threshold_percent
        )


class SatisfactionAnswer(Answer):
    """How much of the requests should go."""

    release_millicpu: int


@decision("be_satisfaction_release", area="koord_cpu_evict", asks=SatisfactionQuestion, answers=SatisfactionAnswer)
def be_satisfaction_release(question: SatisfactionQuestion) -> SatisfactionAnswer:
    """How much CPU to free because best-effort pods starve."""
    window, current = _measured(question, question.window), _measured(question, question.current)
    if window is None or current is None:
        return SatisfactionAnswer(release_millicpu=0)
    return SatisfactionAnswer(release_millicpu=millis_to_free(window, current, question.rule))


def _measured(question: SatisfactionQuestion, samples: BestEffortSamples | None) -> BestEffortCpu | None:
    """None without samples, or where the policy goes by an allocatable that nobody reports."""
    if samples is None or samples.sample_count <= 0:
        return None
    limit = samples.be_real_limit_millicpu
    if question.policy == "evictByAllocatable":
        if question.batch_cpu_allocatable_millicpu is None:
            return None
        limit = question.batch_cpu_allocatable_millicpu or LEAST_ALLOCATABLE_MILLIS
    return BestEffortCpu(limit, samples.be_used_millicpu, samples.be_request_millicpu)


class CpuVictimPod(Question):
    """A pod with its class by label and its CPU."""

    name: str
    koord_qos: KoordQos | None = None
    priority: Int64 | None = None
    request_millicpu: Int64 | None = None
    cpu_used_millicpu: Int64


class CpuVictimQuestion(Question):
    """The pods of the node."""

    pods: list[CpuVictimPod]


class CpuVictimAnswer(Answer):
    """Names, first to go first, and use over request in the same order."""

    victims: list[str]
    usage_ratios: list[float]


@decision("be_cpu_victim_order", area="koord_cpu_evict", asks=CpuVictimQuestion, answers=CpuVictimAnswer)
def be_cpu_victim_order(question: CpuVictimQuestion) -> CpuVictimAnswer:
    """Best-effort pods by priority, then by use over request."""
    order = in_order(
        StarvingPod((pod.name,), pod.priority, pod.request_millicpu or 0, pod.cpu_used_millicpu, pod.name)
        for pod in question.pods
        if pod.koord_qos == "BE"
    )
    return CpuVictimAnswer(victims=[pod.of for pod in order], usage_ratios=[pod.usage_ratio for pod in order])
