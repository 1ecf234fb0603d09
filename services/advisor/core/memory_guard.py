"""The memory guard: how much memory reclaimed pods may use at all (docs/facts/katalyst-memory.md#memory-guard).

The limit is never below what they use: a limit that falls below it kills (docs/facts/linux-cgroups.md#memory-limits).
When their memory must be taken back, that is the work of qrm's bounded steps and of the evictor, not of the limit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from services.advisor.core.machine import SEED_CRITICAL_BYTES
from shared.core.decisions import Answer, Question, decision
from shared.errors import Refused

HIGH_PERCENT = 95
"""Where the kernel begins to slow a cgroup down, of its limit (docs/facts/katalyst-memory.md#memory-guard)."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A NUMA node, or the whole machine as one. `low_bytes` is its low watermark where the kernel tells it."""

    total_bytes: int
    free_bytes: int
    reclaim_used_bytes: int | None
    low_bytes: int | None = None


def guarded_limit_bytes(
    zones: Iterable[Zone], watermark_scale_factor: float, critical_bytes: int, critical_factor: float = 1.0
) -> int:
    """What reclaimed pods use, and of the free memory what lies above the critical watermark, zone by zone.

    Raises:
        Refused: `missing_metric`, their use of a zone is not known, or there is no zone.
    """
    spare = [_allowed_bytes(zone, watermark_scale_factor, critical_bytes, critical_factor) for zone in zones]
    if not spare:
        raise Refused("memory guard: no NUMA node is known", reason="missing_metric")
    return sum(spare)


def _allowed_bytes(zone: Zone, watermark_scale_factor: float, critical_bytes: int, critical_factor: float) -> int:
    if zone.reclaim_used_bytes is None:
        raise Refused("memory guard: the reclaimed pods' use is not known", reason="missing_metric")
    low = zone.total_bytes * watermark_scale_factor / 10_000 if zone.low_bytes is None else zone.low_bytes
    critical = max(critical_bytes, int(low * critical_factor))
    return zone.reclaim_used_bytes + max(0, zone.free_bytes - critical)


def next_limit_bytes(wanted_bytes: int, before_bytes: int | None, used_bytes: int, step_bytes: int) -> int:
    """The next limit on the way to the wanted one: up at once, down by a step at most, never below the use.

    `before_bytes` is the limit in force, None where there is none: any is a step down then.
    """
    if before_bytes is None or wanted_bytes >= before_bytes:
        return max(wanted_bytes, used_bytes)
    return max(wanted_bytes, before_bytes - step_bytes, used_bytes)


def high_bytes(limit_bytes: int) -> int:
    """Where slowing down begins under a limit."""
    return limit_bytes * HIGH_PERCENT // 100


ByteCount = Annotated[int, Field(ge=0, le=1 << 60)]


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
    min_critical_watermark_bytes: ByteCount = SEED_CRITICAL_BYTES
    critical_watermark_factor: Annotated[float, Field(ge=0, le=1e6)] = 1.0


class GuardAnswer(Answer):
    """Hard limit, and where slowing down begins."""

    memory_limit_bytes: int
    memory_high_bytes: int


@decision("memory_guard", area="memory", asks=GuardQuestion, answers=GuardAnswer)
def memory_guard(question: GuardQuestion) -> GuardAnswer:
    """The memory limit of the reclaimed root cgroup."""
    limit = guarded_limit_bytes(
        (Zone(n.total_bytes, n.free_bytes, n.reclaim_used_bytes, n.zone_low_bytes) for n in question.numas.values()),
        question.watermark_scale_factor,
        question.min_critical_watermark_bytes,
        question.critical_watermark_factor,
    )
    return GuardAnswer(memory_limit_bytes=limit, memory_high_bytes=high_bytes(limit))
