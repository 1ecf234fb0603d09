"""The what-if kind `memory_guard` limits the memory of the reclaimed root cgroup."""

from typing import Annotated

from pydantic import Field

from services.advisor.core.memory.limit import MemoryZone, guarded_limit_bytes
from services.advisor.core.model.machine import KATALYST_CRITICAL_BYTES
from services.advisor.whatif.quantities import ByteCount
from shared.whatif.decisions import Answer, Question, decision

HIGH_PERCENT = 95
"""Where the kernel begins to slow a cgroup down, of its limit (docs/facts/katalyst-memory.md#memory-guard)."""


def high_bytes(limit_bytes: int) -> int:
    """Where slowing down begins under a limit."""
    return limit_bytes * HIGH_PERCENT // 100


class NumaMemory(Question):
    """One NUMA node."""

    total_bytes: ByteCount
    free_bytes: ByteCount
    reclaim_used_bytes: ByteCount | None = None
    zone_low_bytes: ByteCount | None = None


class GuardQuestion(Question):
    """The machine's NUMA nodes by id, and how much of each stays free."""

    numas: dict[int, NumaMemory]
    watermark_scale_factor: Annotated[float, Field(ge=0, le=10_000)]
    min_critical_watermark_bytes: ByteCount = KATALYST_CRITICAL_BYTES
    critical_watermark_factor: Annotated[float, Field(ge=0, le=1e6)] = 1.0


class GuardAnswer(Answer):
    """Hard limit, and where slowing down begins."""

    memory_limit_bytes: int
    memory_high_bytes: int


@decision("memory_guard", area="memory", asks=GuardQuestion, answers=GuardAnswer)
def memory_guard(question: GuardQuestion) -> GuardAnswer:
    """The memory limit of the reclaimed root cgroup."""
    limit = guarded_limit_bytes(
        (
            MemoryZone(n.total_bytes, n.free_bytes, n.reclaim_used_bytes, n.zone_low_bytes)
            for n in question.numas.values()
        ),
        question.watermark_scale_factor,
        question.min_critical_watermark_bytes,
        question.critical_watermark_factor,
    )
    return GuardAnswer(memory_limit_bytes=limit, memory_high_bytes=high_bytes(limit))
