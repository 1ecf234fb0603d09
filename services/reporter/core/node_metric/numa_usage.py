"""Computes the use of each NUMA node at one moment: shares of the node's CPU use, and memory that cannot be
reclaimed.

Facts: docs/facts/koordinator-node-metric.md#figures.
"""

from services.reporter.core.node_metric.collect_policy import MemoryCollectPolicy
from shared.contracts.sample import NodeReading, NodeSample, NumaReading
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.shares import shared_out


def numa_cpu_millis(sample: NodeSample) -> dict[int, int]:
    """Divide the node's CPU use by how busy the CPUs of each NUMA node are; empty if one of both is unknown.

    Each CPU is known to a percent. As shares of the node's use they add up, and small uses are not lost.
    """
    node = sample.node_reading
    busy = _busy_percent(node)
    if node.cpu_usage_cores is None or not busy:
        return {}
    cpus = {numa.numa: CpuSet.parse(numa.cpus) for numa in sample.numas}
    # A CPU of which it is not known where it lies would be counted for others.
    if not set(busy) <= set(CpuSet.union(cpus.values())):
        return {}
    weights = {number: sum(busy.get(cpu, 0) for cpu in inside) for number, inside in cpus.items()}
    idle = not any(weights.values())
    return shared_out(round(node.cpu_usage_cores * 1000), {n: len(cpus[n]) for n in cpus} if idle else weights)


def numa_memory_bytes(numa: NumaReading, policy: MemoryCollectPolicy) -> int | None:
    """With pages of files, or without them; None where a figure is missing."""
    if policy != "usageWithPageCache":
        return numa.memory_used_bytes
    if numa.memory_total_bytes is None or numa.memory_free_bytes is None:
        return None
    return max(0, numa.memory_total_bytes - numa.memory_free_bytes)


def _busy_percent(node: NodeReading) -> dict[int, int]:
    return node.cpus.by_cpu() if node.cpus is not None else {}
