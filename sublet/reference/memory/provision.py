"""`provision_bytes` says what memory each NUMA node may give (docs/facts/katalyst-memory.md#memory-provision)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.advisor.core.memory.holders import Holder, open_numas, reclaimed_requests
from services.advisor.core.memory.watermarks import SCALE_UNIT, WATERMARK_FACTOR
from services.advisor.whatif.quantities import ByteCount, NumaId, ScaleFactor
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision
from sublet.reference.memory.containers import MISSING_METRIC, MemoryContainer, needed


@dataclass(frozen=True, slots=True)
class NumaFree:
    """Memory of one NUMA node that is open to reclaimed pods."""

    total_bytes: int
    free_bytes: int


def provision_bytes(
    open_ones: Mapping[int, NumaFree], holders: Sequence[Holder], reserved_bytes: int, watermark_scale_factor: float
) -> dict[int, int]:
    """By NUMA node, ascending: what is free and what reclaimed pods asked for there, without reserve and watermarks.

    Reserve and watermarks are split evenly over these NUMA nodes. Never below 0 or above a node's memory.
    """
    if not open_ones:
        return {}
    watermarks = sum(numa.total_bytes for numa in open_ones.values()) * WATERMARK_FACTOR * watermark_scale_factor
    kept_bytes = (reserved_bytes + watermarks / SCALE_UNIT) / len(open_ones)
    requests = reclaimed_requests(holders, open_ones)
    return {
        numa: int(min(max(0.0, open_ones[numa].free_bytes + asked - kept_bytes), open_ones[numa].total_bytes))
        for numa, asked in requests.items()
    }


class NumaSupply(Question):
    """What is measured of one NUMA node; null where missing."""

    total_bytes: ByteCount | None = None
    free_bytes: ByteCount | None = None


class MemoryProvisionQuestion(Question):
    """The machine's NUMA nodes, and who holds their memory."""

    reserved_bytes: ByteCount
    watermark_scale_factor: ScaleFactor | None = None
    numas: dict[NumaId, NumaSupply]
    containers: list[MemoryContainer]


class MemoryProvisionAnswer(Answer):
    """Bytes by NUMA node."""

    per_numa_bytes: dict[int, int]


@decision("memory_provision", area="memory", asks=MemoryProvisionQuestion, answers=MemoryProvisionAnswer)
def memory_provision(question: MemoryProvisionQuestion) -> MemoryProvisionAnswer:
    """Memory each NUMA node may give to reclaimed pods."""
    holders = [container.holder(enable_reclaim=True) for container in question.containers]
    open_ones = {
        numa: NumaFree(*needed(numa, question.numas[numa], ("total_bytes", "free_bytes")))
        for numa in open_numas(holders, question.numas)
    }
    if question.watermark_scale_factor is None:
        raise Refused("memory provision: the watermark scale factor is not known", reason=MISSING_METRIC)
    given = provision_bytes(open_ones, holders, question.reserved_bytes, question.watermark_scale_factor)
    return MemoryProvisionAnswer(per_numa_bytes={numa: given.get(numa, 0) for numa in sorted(question.numas)})
