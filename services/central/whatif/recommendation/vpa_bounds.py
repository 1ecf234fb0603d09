"""The what-if kind `vpa_bounds`: target, lower and upper bound as the VPA recommender has them."""

from typing import Annotated

from pydantic import Field

from services.central.core.recommendation.bounds import (
    MARGIN_RATIO,
    POD_MIN_CPU_MILLIS,
    POD_MIN_MEMORY_BYTES,
    RequestBounds,
    UsagePercentiles,
    confidence_days,
    request_bounds,
)
from shared.whatif.decisions import Answer, Question, decision

Amount = Annotated[float, Field(ge=0)]


class PercentilesAsked(Question):
    """Percentiles of usage, in cores or bytes."""

    lower: Amount
    target: Amount
    upper: Amount


class UsageBoundsQuestion(Question):
    """Use, and how much of it is known."""

    cpu: PercentilesAsked
    memory: PercentilesAsked
    history_s: Amount
    samples: Amount
    margin_ratio: Amount = MARGIN_RATIO
    containers: Annotated[int, Field(ge=1)] = 1
    pod_min_cpu_millicpu: Annotated[int, Field(ge=0)] = POD_MIN_CPU_MILLIS
    pod_min_memory_bytes: Annotated[int, Field(ge=0)] = POD_MIN_MEMORY_BYTES


class ResourceBounds(Answer):
    """In milli or bytes; null: no bound."""

    target: int
    lower: int
    upper: int | None


class UsageBoundsAnswer(Answer):
    """How many days are known, and the bounds of each resource."""

    confidence_days: float
    cpu: ResourceBounds
    memory: ResourceBounds


@decision("vpa_bounds", area="recommendation", asks=UsageBoundsQuestion, answers=UsageBoundsAnswer)
def vpa_bounds(question: UsageBoundsQuestion) -> UsageBoundsAnswer:
    """Target, lower and upper bound as the VPA recommender has them."""
    confidence, margin = confidence_days(question.history_s, question.samples), question.margin_ratio
    cores, memory = question.cpu, question.memory
    cpu = UsagePercentiles(cores.lower * 1000, cores.target * 1000, cores.upper * 1000)
    used = UsagePercentiles(memory.lower, memory.target, memory.upper)
    least_cpu = question.pod_min_cpu_millicpu // question.containers
    least_memory = question.pod_min_memory_bytes // question.containers
    return UsageBoundsAnswer(
        confidence_days=confidence,
        cpu=_answer(request_bounds(cpu, confidence, least_cpu, margin)),
        memory=_answer(request_bounds(used, confidence, least_memory, margin)),
    )


def _answer(bounds: RequestBounds) -> ResourceBounds:
    return ResourceBounds(target=bounds.target, lower=bounds.lower, upper=bounds.upper)
