"""Memory offered to reclaimed pods, and the limit of their cgroup (notes/katalyst-node-agent.md section 5)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from services.advisor.core.machine import SEED_CRITICAL_BYTES
from shared.contracts.pod import QosClass
from shared.core.decisions import Answer, Question, decision
from shared.errors import Refused

TENANT_PERCENT = 110
"""Shared and dedicated containers count with a tenth on top (section 5.1 of the notes)."""
HIGH_PERCENT = 95
"""Where the kernel begins to slow a cgroup down, of its limit (section 5.2 of the notes)."""
LIMIT_STEPS = 512
"""A limit is rounded up to a 512th of the machine's memory, so that it is not written anew for every page."""


@dataclass(frozen=True, slots=True)
class Resident:
    """What is measured of a container's memory. `cache_bytes` holds shared memory too, as the kernel counts."""

    rss_bytes: int | None = None
    cache_bytes: int | None = None


def estimate_bytes(
    qos: QosClass, figures: Resident, request_bytes: int, unknown_bytes: int, percent: int = TENANT_PERCENT
) -> int:
    """Memory that counts for one container: measured with its margin, else the request, else `unknown_bytes`.

    Of system_cores only resident memory counts, without margin; reclaimed pods live on the offer and count nothing.
    """
    if qos == "reclaimed_cores":
        return 0
    system = qos == "system_cores"
    known = [figure for figure in (figures.rss_bytes, None if system else figures.cache_bytes) if figure]
    if known:
        return -(-sum(known) * (100 if system else percent) // 100)
    return request_bytes if request_bytes > 0 else unknown_bytes


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """The node's memory, and what reclaimed pods use of it; None where it could not be read."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    reclaimed_used_bytes: int | None = None
    watermark_scale_factor: int | None = None


def offered_bytes(node: NodeMemory, tenants_bytes: int, reserved_bytes: int, before_bytes: int) -> int:
    """Total - reserve - tenants, as the canonical rule has it, but never above what is really there for reclaimed pods.

    That is what they use plus what the kernel calls available. It binds only where the system itself uses more than
    the reserve. Where a figure is missing nothing is added to the offer of the last round.
    """
    if node.total_bytes is None:
        return before_bytes
    canonical = max(0, node.total_bytes - reserved_bytes - tenants_bytes)
    if node.available_bytes is None:
        return min(canonical, before_bytes)
    return min(canonical, node.available_bytes + (node.reclaimed_used_bytes or 0))


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


def node_limit_bytes(node: NodeMemory, critical_bytes: int) -> int | None:
    """The limit for the reclaimed pool's cgroup over the whole node; None where a figure is missing: leave it as it is.

    Available memory stands for free memory: on a machine that has run for a while the page cache holds nearly all that
    is free, and a limit by free memory alone would freeze batch work at its present size.
    """
    total, available, used = node.total_bytes, node.available_bytes, node.reclaimed_used_bytes
    if total is None or available is None or used is None or node.watermark_scale_factor is None:
        return None
    limit = guarded_limit_bytes([Zone(total, available, used)], node.watermark_scale_factor, critical_bytes)
    step = max(1, total // LIMIT_STEPS)
    return -(-limit // step) * step


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
    return GuardAnswer(memory_limit_bytes=limit, memory_high_bytes=limit * HIGH_PERCENT // 100)
