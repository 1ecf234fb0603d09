"""The what-if kind `recommend_request`: from percentiles to a request."""

from typing import Annotated

from pydantic import Field

from services.central.core.recommendation.request import (
    BUFFER_PERCENT,
    AllowedRange,
    requested_cpu,
    requested_memory,
    with_buffer,
)
from shared.whatif.decisions import Answer, Question, decision

Amount = Annotated[float, Field(ge=0)]


class RequestQuestion(Question):
    """Percentiles of what was used, what a kill taught, and what is allowed."""

    cpu_cores: Amount | None = None
    memory_bytes: Amount | None = None
    buffer_percent: float = BUFFER_PERCENT
    oom_memory_bytes: Annotated[int, Field(ge=0)] | None = None
    min_allowed: dict[str, int] = {}
    max_allowed: dict[str, int] = {}


class RequestAnswer(Answer):
    """What to request; null if it was not asked about."""

    cpu_millicpu: int | None
    memory_bytes: int | None
    from_oom: bool | None


@decision("recommend_request", area="recommendation", asks=RequestQuestion, answers=RequestAnswer)
def recommend_request(question: RequestQuestion) -> RequestAnswer:
    """From percentiles to a request."""
    buffer, allowed = question.buffer_percent, AllowedRange(question.min_allowed, question.max_allowed)
    with_buffer(0, buffer)  # a wrong one is said also where no resource is asked about
    cpu = None if question.cpu_cores is None else requested_cpu(question.cpu_cores, buffer, allowed)
    if question.memory_bytes is None:
        return RequestAnswer(cpu_millicpu=cpu, memory_bytes=None, from_oom=False)
    memory = requested_memory(question.memory_bytes, buffer, question.oom_memory_bytes, allowed)
    return RequestAnswer(cpu_millicpu=cpu, memory_bytes=memory.size_bytes, from_oom=memory.from_oom)
