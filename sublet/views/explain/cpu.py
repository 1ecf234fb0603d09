"""Why a CPU belongs to its pool: its place in the machine, its pools, the rule with its numbers, and who runs on it."""

from typing import Any

from shared.contracts.allocation import PoolAllocation
from shared.core.cpus.cpuset import CpuSet
from sublet.views.explain.chain import Document, advice_part, allocation_part, usage_part
from sublet.views.facts import NodeFacts
from sublet.views.usage import pod_usage, pool_rows

RULES = {
    "reclaim-first": "the reclaimed pool takes its size first, balanced over the NUMA nodes, whole cores before single "
    "threads; the shared pool has what is left",
    "share-first": "the shared pool takes its size first, balanced over the NUMA nodes, whole cores before single "
    "threads; the reclaimed pool takes its own from the rest, and what nobody asked for is shared",
    "overlap": "CPUs are shared, because that shape is chosen, the machine is too small for separate pools, or nothing "
    "is reclaimed: tenants run on every CPU that is not reserved, and the reclaimed pool has some of them behind them, "
    "at the kernel's lowest weight",
    "safe-floor": "there is no fresh advice: reclaimed work is held to its floor, the tenants have the rest",
}
"""What the rules of qrm's allocation mean; a rule that is not here stands for itself."""


def cpu_chain(facts: NodeFacts, cpu: int) -> Document | None:
    """Everything known about a CPU; None where nobody tells of such a CPU."""
    if cpu not in facts.cpus:
        return None
    allocation = facts.allocation
    holders = [pool for pool in (allocation.pools if allocation else ()) if cpu in CpuSet.parse(pool.cpus)]
    return {
        "node": facts.node,
        "cpu": cpu,
        "online": _online(facts, cpu),
        "place": _place(facts, cpu),
        "pools": [_pool(facts, pool) for pool in holders],
        "allocation": None if allocation is None else allocation_part(allocation) | {"meaning": _meaning(facts)},
        "pods": _pods(facts, cpu),
        "conditions": [{"type": c.type, "message": c.message} for c in (allocation.conditions if allocation else ())],
        "advice": advice_part(facts),
        "sample": _sample(facts, {pool.pool for pool in holders}),
        "silent": list(facts.silent),
    }


def _online(facts: NodeFacts, cpu: int) -> bool | None:
    """Whether the kernel runs tasks on it; None where nobody tells."""
    if cpu in facts.offline:
        return False
    return None if facts.online is None else cpu in facts.online


def _place(facts: NodeFacts, cpu: int) -> Document:
    """Where the CPU sits; what is not told is None."""
    topology = facts.topology
    row = next((row for row in (topology.cpus if topology else ()) if row.id == cpu), None)
    if topology is None or row is None:
        numa = next((numa for numa, cpus in facts.numas.items() if cpu in cpus), None)
        return dict.fromkeys(("socket", "core", "siblings", "l3", "l3_cpus")) | {"numa": numa}
    l3_cpus = CpuSet.of(other.id for other in topology.cpus if (other.socket, other.l3) == (row.socket, row.l3))
    return {
        "socket": row.socket,
        "numa": row.numa,
        "core": row.core,
        "siblings": str(topology.cores[row.core] - CpuSet.of([cpu])),
        "l3": None if row.l3 < 0 else row.l3,
        "l3_cpus": None if row.l3 < 0 else str(l3_cpus),
    }


def _pool(facts: NodeFacts, pool: PoolAllocation) -> Document:
    cpus = CpuSet.parse(pool.cpus)
    numas = facts.topology.numas if facts.topology else facts.numas
    return {
        "pool": pool.pool,
        "cpus": pool.cpus,
        "count": len(cpus),
        "count_by_numa": {str(numa): len(cpus & here) for numa, here in numas.items() if cpus & here},
        "mems": pool.mems,
    }


def _meaning(facts: NodeFacts) -> str | None:
    rules = [reason.rule for reason in (facts.allocation.why if facts.allocation else ())]
    return next((RULES[rule] for rule in rules if rule in RULES), None)


def _pods(facts: NodeFacts, cpu: int) -> list[Document] | None:
    """The pods whose cgroup may use the CPU, ascending by namespace/name; None where no allocation is told."""
    if facts.allocation is None:
        return None
    readings = {reading.pod.uid: reading for reading in (facts.sample.pods if facts.sample else ())}
    entries = [entry for entry in facts.allocation.pods if cpu in CpuSet.parse(entry.cpus)]
    documents: list[Document] = []
    for entry in sorted(entries, key=lambda entry: (entry.namespace, entry.name, entry.uid)):
        reading = readings.get(entry.uid)
        known: dict[str, Any] = {"namespace": entry.namespace, "name": entry.name, "uid": entry.uid}
        known |= {"pool": entry.pool, "cpus": entry.cpus, "qos": reading.pod.qos if reading else None}
        documents.append(known | {"usage": usage_part(pod_usage(reading, entry.cpus)) if reading else None})
    return documents


def _sample(facts: NodeFacts, holders: set[str]) -> Document | None:
    """What the CPU's pools use; the kernel's figures are by cgroup, not by CPU."""
    if facts.sample is None:
        return None
    return {
        "ref": facts.sample.ref,
        "trigger": facts.sample.trigger,
        "node_cpu_usage_cores": facts.sample.node_reading.cpu_usage_cores,
        "pools": {row.name: usage_part(row) for row in pool_rows(facts) if row.name in holders},
    }
