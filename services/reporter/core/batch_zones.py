"""Share the offered batch resources out to NUMA nodes: parts that add up to what the node offers.

CPU goes by the CPUs of the reclaimed pool, on which batch pods run; memory by what is idle of each NUMA node. A part of
which a figure is missing is left out of all of them: shares of some would not add up.

Facts: docs/facts/koordinator-batch.md#batch-resources-of-numa-nodes.
"""

from collections.abc import Mapping, Sequence

from services.reporter.core.batch_demand import is_high
from services.reporter.core.field import NumaShare, Offered
from shared.contracts.allocation import Allocation
from shared.contracts.sample import NodeSample, NumaReading
from shared.core.cgroups.layout import RECLAIM
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.shares import shared_out


def batch_by_numa(
    offered: Offered, sample: NodeSample, allocation: Allocation, memory_reclaim_percent: int
) -> dict[int, NumaShare]:
    """The shares by NUMA node, ascending; beyond `memory_reclaim_percent` the memory of none is lent."""
    cpu = shared_out(offered.cpu_millis, _pool_cpus(sample.numas, allocation))
    memory = shared_out(offered.memory_bytes, _memory_weights(offered.memory_bytes, sample, memory_reclaim_percent))
    return {
        numa.numa: NumaShare(cpu.get(numa.numa), memory.get(numa.numa))
        for numa in sorted(sample.numas, key=lambda numa: numa.numa)
        if cpu or memory
    }


def _pool_cpus(numas: Sequence[NumaReading], allocation: Allocation) -> dict[int, int]:
    pool = allocation.pool(RECLAIM)
    cpus = CpuSet() if pool is None else CpuSet.parse(pool.cpus)
    return {numa.numa: len(cpus & CpuSet.parse(numa.cpus)) for numa in numas}


def _memory_weights(offered_bytes: int, sample: NodeSample, percent: int) -> Mapping[int, int]:
    totals, idle, ours = dict[int, int](), dict[int, int](), _batch_memory(sample)
    for numa in sample.numas:
        total, used = numa.memory_total_bytes, numa.memory_used_bytes
        if total is None or used is None:
            return {}
        # What batch pods already have is part of what they may have.
        used = max(0, used - ours.get(numa.numa, 0))
        totals[numa.numa], idle[numa.numa] = total, max(0, total * percent // 100 - used)
    # By weights that are smaller than the offer, a NUMA node could get more than it has.
    return idle if sum(idle.values()) >= max(1, offered_bytes) else totals


def _batch_memory(sample: NodeSample) -> dict[int, int]:
    """Return what batch pods hold on each NUMA node, without page cache."""
    held: dict[int, int] = {}
    for reading in sample.pods:
        for container in () if is_high(reading.pod) else reading.containers:
            for part in container.memory_numa or ():
                held[part.numa] = held.get(part.numa, 0) + (part.anon_bytes or 0)
    return held
