"""Ask how a pod's memory is protected: the what-if kind `memory_protection`."""

from typing import Annotated

from pydantic import Field

from services.qrm.core.isolation.memory_qos import PAGE_BYTES, protected, protection
from services.qrm.core.isolation.rules import MemoryQos
from shared.contracts.pod import Container
from shared.whatif.decisions import Answer, Question, decision

Amount = Annotated[int, Field(ge=0, lt=1 << 63)]
Percent = Annotated[int, Field(ge=0, le=1000)]


class MemoryAsked(Question):
    """A container; null: undeclared."""

    name: Annotated[str, Field(max_length=253)]
    request_bytes: Amount | None = None
    limit_bytes: Amount | None = None

    def figures(self) -> Container:
        """As qrm sees it; the name decides nothing."""
        return Container(
            name="c", memory_request_bytes=self.request_bytes or 0, memory_limit_bytes=self.limit_bytes or 0
        )


class ProtectionQuestion(Question):
    """A pod's containers, the class's percents, and the node."""

    containers: list[MemoryAsked]
    min_percent: Percent = 0
    low_percent: Percent = 0
    throttling_percent: Percent = 0
    node_allocatable_bytes: Amount
    page_bytes: Annotated[int, Field(ge=1, le=1 << 30)] = PAGE_BYTES


class ContainerProtected(Answer):
    """What one container gets; null: it is never throttled."""

    name: str
    min_bytes: int
    low_bytes: int
    high_bytes: int | None


class ProtectionAnswer(Answer):
    """What the containers get, and their pod."""

    containers: list[ContainerProtected]
    pod_min_bytes: int
    pod_low_bytes: int


@decision("memory_protection", area="isolation", asks=ProtectionQuestion, answers=ProtectionAnswer)
def memory_protection(question: ProtectionQuestion) -> ProtectionAnswer:
    """memory.min, memory.low and memory.high of a pod."""
    qos = MemoryQos(question.min_percent, question.low_percent, question.throttling_percent)
    told, requests = [], 0
    for one in question.containers:
        container = one.figures()
        requests += container.memory_request_bytes
        own = protection(container, qos, question.node_allocatable_bytes, question.page_bytes)
        told.append(
            ContainerProtected(
                name=one.name, min_bytes=own.min_bytes, low_bytes=own.low_bytes, high_bytes=own.high_bytes
            )
        )
    pod = protected(requests, qos)
    return ProtectionAnswer(containers=told, pod_min_bytes=pod.min_bytes, pod_low_bytes=pod.low_bytes)
