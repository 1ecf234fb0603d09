"""The what-if kind `oom_memory`: what kills for want of memory teach."""

from typing import Annotated

from pydantic import Field

from services.central.core.recommendation.oom import (
    BUMP_RATIO,
    KEEP_S,
    MAX_RECORDS,
    MIN_BUMP_BYTES,
    ContainerKey,
    Lift,
    OomKill,
    WorkloadContainer,
    is_news,
    kept,
    memory_floor,
)
from shared.whatif.decisions import Answer, Question, decision


class KillAsked(Question):
    """A container that was killed, and what it had been given."""

    namespace: str
    pod: str
    container: str
    memory_bytes: Annotated[int, Field(ge=0)]
    finished_s: float


class WorkloadAsked(Question):
    """A container of a workload."""

    namespace: str
    name: str
    container: str


class OomQuestion(Question):
    """Kills in the order in which they were reported."""

    events: list[KillAsked]
    now_s: float
    keep_s: Annotated[float, Field(ge=0)] = KEEP_S
    max_records: Annotated[int, Field(ge=0)] = MAX_RECORDS
    workload: WorkloadAsked | None = None
    bump_ratio: Annotated[float, Field(ge=0)] = BUMP_RATIO
    min_bump_bytes: Annotated[int, Field(ge=0)] = MIN_BUMP_BYTES


class KillKept(Answer):
    """The record of a container."""

    namespace: str
    pod: str
    container: str
    memory_bytes: int
    finished_s: float


class OomAnswer(Answer):
    """Which kills taught something, what is kept of them, and what the workload needs."""

    accepted: list[bool]
    records: list[KillKept]
    request_bytes: int | None


@decision("oom_memory", area="recommendation", asks=OomQuestion, answers=OomAnswer)
def oom_memory(question: OomQuestion) -> OomAnswer:
    """Return what OOM kills teach."""
    known: dict[ContainerKey, OomKill] = {}
    accepted: list[bool] = []
    for asked in question.events:
        kill = OomKill(**asked.model_dump())
        accepted.append(is_news(kill, known.get(kill.key)))
        if accepted[-1]:
            known[kill.key] = kill
    records = kept(known, question.now_s, question.keep_s, question.max_records)
    floor = None
    if (of := question.workload) is not None:
        workload = WorkloadContainer(of.namespace, of.name, of.container)
        lift = Lift(question.bump_ratio, question.min_bump_bytes)
        floor = memory_floor(records, workload, question.now_s, lift)
    listed = [KillKept.model_validate(kill, from_attributes=True) for kill in records]
    return OomAnswer(accepted=accepted, records=listed, request_bytes=floor)
