"""The what-if kind `memory_headroom` measures the memory headroom of a machine that a question describes."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.advisor.core.memory.holders import Holder, open_numas
from services.advisor.core.memory.numa import NumaReserve, NumaRoom, NumaRules, ReclaimLimits, numa_headroom_bytes
from services.advisor.whatif.quantities import ByteCount, NumaId, Ratio, ScaleFactor
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision
from sublet.reference.memory.containers import MISSING_METRIC, MemoryContainer, needed
from sublet.reference.memory.headroom import BufferRules, NodeUse, canonical_headroom_bytes


class NumaFigures(Question):
    """What is measured of one NUMA node; null where missing."""

    total_bytes: ByteCount | None = None
    free_bytes: ByteCount | None = None
    inactive_file_bytes: ByteCount | None = None


class HeadroomConfig(Question):
    """What is offered beyond the estimates."""

    free_based_ratio: Ratio = BufferRules().free_ratio
    static_based_bytes: Annotated[float, Field(ge=0, le=1 << 60)] = BufferRules().static_bytes
    cache_based_ratio: Ratio = BufferRules().cache_ratio
    request_based_ratio: Ratio = NumaRules().request_ratio
    max_oversold_ratio: Ratio = NumaRules().max_oversold_ratio


class MachineFigures(Question):
    """The machine as it was built."""

    cpus: Annotated[int, Field(ge=1, le=1_000_000)]
    memory_bytes: Annotated[int, Field(ge=1, le=1 << 60)]


class NodeFigures(Question):
    """How the machine's memory is used now."""

    total_bytes: ByteCount
    free_bytes: ByteCount
    used_bytes: ByteCount
    watermark_scale_factor: ScaleFactor


class MemoryHeadroomQuestion(Question):
    """The policy, the machine, and who holds its memory."""

    policy: Literal["canonical", "numa_aware"]
    capacity_bytes: ByteCount
    reserved_bytes: ByteCount
    enable_reclaim: bool = True
    metrics_ready: bool = True
    containers: list[MemoryContainer]
    numas: dict[NumaId, NumaFigures] | None = None
    config: HeadroomConfig = HeadroomConfig()
    util_based: bool = False
    machine: MachineFigures | None = None
    node: NodeFigures | None = None
    numa_nodes: Annotated[int, Field(ge=1, le=8192)] | None = None
    watermark_scale_factor: ScaleFactor | None = None
    reclaim_limit_bytes: ByteCount | None = None
    reclaim_limit_per_numa_bytes: dict[NumaId, ByteCount] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.policy == "canonical" and self.util_based and (self.machine is None or self.node is None):
            raise ValueError("util_based: needs machine and node")
        if self.policy == "numa_aware" and self.numa_nodes is None:
            raise ValueError("numa_nodes: needed with policy numa_aware")
        return self

    @property
    def holders(self) -> list[Holder]:
        """Every container as the rules see it."""
        return [container.holder(enable_reclaim=self.enable_reclaim) for container in self.containers]

    @property
    def numa_ids(self) -> list[int]:
        """The machine's NUMA nodes, ascending: those described, and by number those that must be there besides."""
        known = set(self.numas or ())
        numbered = (numa for numa in range(8192) if numa not in known)
        missing = max(0, (self.numa_nodes or 0) - len(known))
        return sorted(known | {next(numbered) for _ in range(missing)})


class MemoryHeadroomAnswer(Answer):
    """Bytes that may be offered; by NUMA node where the policy knows them."""

    headroom_bytes: int
    per_numa_bytes: dict[int, int] | None = None


@decision("memory_headroom", area="memory", asks=MemoryHeadroomQuestion, answers=MemoryHeadroomAnswer)
def memory_headroom(question: MemoryHeadroomQuestion) -> MemoryHeadroomAnswer:
    """Reclaimed memory of the node."""
    if not question.metrics_ready:
        raise Refused("memory headroom: the metrics are not ready; ask again after the next pass", reason="not_ready")
    if question.policy == "canonical":
        return MemoryHeadroomAnswer(headroom_bytes=_canonical(question))
    by_numa = _numa_aware(question)
    return MemoryHeadroomAnswer(headroom_bytes=sum(by_numa.values()), per_numa_bytes=by_numa)


def _canonical(question: MemoryHeadroomQuestion) -> int:
    buffer = None
    if question.util_based and question.machine is not None and question.node is not None:
        use = NodeUse(**question.machine.model_dump(), **question.node.model_dump())
        config = question.config
        buffer = use, BufferRules(config.free_based_ratio, config.static_based_bytes, config.cache_based_ratio)
    return canonical_headroom_bytes(
        question.capacity_bytes, question.reserved_bytes, question.holders, _numa_totals(question), buffer
    )


def _numa_totals(question: MemoryHeadroomQuestion) -> dict[int, int]:
    """Sizes of the NUMA nodes; where none is described the capacity is split over as many as there are."""
    if question.numas is not None:
        return {n: figures.total_bytes for n, figures in question.numas.items() if figures.total_bytes is not None}
    count = question.numa_nodes or 1
    return dict.fromkeys(range(count), question.capacity_bytes // count)


def _numa_aware(question: MemoryHeadroomQuestion) -> dict[int, int]:
    holders, numas = question.holders, question.numa_ids
    open_ones = open_numas(holders, numas)
    if question.watermark_scale_factor is None:
        raise Refused("memory headroom: the watermark scale factor is not known", reason=MISSING_METRIC)
    config = question.config
    by_numa = numa_headroom_bytes(
        {numa: _room(numa, question.numas or {}) for numa in open_ones},
        holders,
        NumaReserve(question.reserved_bytes * len(open_ones) / len(numas), question.watermark_scale_factor),
        NumaRules(config.cache_based_ratio, config.request_based_ratio, config.max_oversold_ratio),
        ReclaimLimits(question.reclaim_limit_bytes, question.reclaim_limit_per_numa_bytes or {}),
    )
    return {numa: by_numa.get(numa, 0) for numa in numas}


def _room(numa: int, described: Mapping[int, NumaFigures]) -> NumaRoom:
    figures = described.get(numa)
    if figures is None:
        raise Refused(f"memory headroom: nothing is known of NUMA node {numa}", reason=MISSING_METRIC)
    total, free, inactive = needed(numa, figures, ("total_bytes", "free_bytes", "inactive_file_bytes"))
    return NumaRoom(total, free, inactive)
