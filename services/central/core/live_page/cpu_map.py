"""One node's CPUs as the live page draws them."""

from typing import Any

from shared.contracts.cluster.cpus import CpuMap
from shared.core.cpus.cpuset import CpuSet


def cpu_map(cpus: CpuMap) -> dict[str, Any]:
    """Columns of the CPUs in the order socket, NUMA node, L3 group, core, CPU; the pools of each CPU by number.

    Pools that share a CPU are all named: the page decides how it draws two.
    """
    table = cpus.table
    rows = sorted(zip(table.sockets, table.numas, table.l3s, table.cores, table.ids, table.busy_percent, strict=True),
                  key=lambda row: row[:5])  # fmt: skip
    pools = [CpuSet.parse(pool.cpus) for pool in cpus.pools]
    return {
        "node": cpus.node,
        "at": cpus.sent_at.isoformat(),
        "cpus": [list(row) for row in rows],
        "pools": [pool.pool for pool in cpus.pools],
        "of": [[number for number, members in enumerate(pools) if row[4] in members] for row in rows],
        "pods": [[pod.namespace, pod.name, pod.pool, pod.cpus, pod.cpu_millis] for pod in cpus.pods],
        "pods_left_out": cpus.pods_left_out,
    }
