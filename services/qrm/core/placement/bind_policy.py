"""A bind policy says how the CPUs of an LSE or LSR pod lie on cores, and next to whom.

Facts: docs/facts/koordinator-cpus.md#resource-spec.

A policy restricts the free CPUs from which all strategies take, and checks the result. A required policy is therefore
never broken: without a suitable set the pod gets no CPUs. Of preferences, the one about neighbours is given up first,
then the one about cores, and what was given up is reported for as long as it lasts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology
from shared.core.pods.cpu_binding import CpuBinding, CpuBindPolicy, CpuExclusivePolicy

Neighbours = Mapping[CpuExclusivePolicy, CpuSet]
"""By exclusive policy, the CPUs of the other pods that have it."""


@dataclass(frozen=True, slots=True)
class BindAttempt:
    """The CPUs that a pod may take from, and the policy that its set must hold to."""

    free: CpuSet
    policy: CpuBindPolicy | None


def attempts(topology: Topology, free: CpuSet, binding: CpuBinding, others: Neighbours) -> Iterator[BindAttempt]:
    """Return the attempts, the best first; without a required policy the last one is everything that is free."""
    apart = free - _kept_away(topology, binding.exclusive, others)
    policies = [binding.policy] if binding.required or binding.policy is None else [binding.policy, None]
    for policy in policies:
        for cpus in (apart, free) if apart != free else (free,):
            yield BindAttempt(_of_policy(topology, cpus, policy), policy)


def holds(topology: Topology, cpus: CpuSet, policy: CpuBindPolicy | None) -> bool:
    """Return whether a set of CPUs satisfies the policy."""
    cores = [core for core in topology.cores.values() if core & cpus]
    match policy:
        case "FullPCPUs":
            return all(core <= cpus for core in cores)
        case "SpreadByPCPUs":
            return all(len(core & cpus) == 1 for core in cores)
        case None:
            return True


def unmet(topology: Topology, cpus: CpuSet, binding: CpuBinding, others: Neighbours) -> tuple[str, ...]:
    """Return which of a pod's preferences its CPUs do not satisfy, in words."""
    words = list(binding.unread)
    if not holds(topology, cpus, binding.policy):
        words.append(f"preferredCPUBindPolicy {binding.policy}: no free CPUs are such, it has {cpus}")
    beside = cpus & _kept_away(topology, binding.exclusive, others)
    if beside:
        words.append(f"preferredCPUExclusivePolicy {binding.exclusive}: CPUs {beside} lie beside another such pod's")
    return tuple(words)


def _kept_away(topology: Topology, exclusive: CpuExclusivePolicy | None, others: Neighbours) -> CpuSet:
    """Whole cores, or whole NUMA nodes, on which another pod of the same exclusive policy has a CPU."""
    if exclusive is None:
        return CpuSet()
    groups = topology.cores if exclusive == "PCPULevel" else topology.numas
    taken = others.get(exclusive, CpuSet())
    return CpuSet.union(group for group in groups.values() if group & taken)


def _of_policy(topology: Topology, cpus: CpuSet, policy: CpuBindPolicy | None) -> CpuSet:
    match policy:
        case "FullPCPUs":
            return CpuSet.union(core for core in topology.cores.values() if core <= cpus)
        case "SpreadByPCPUs":
            return CpuSet.union((core & cpus).first(1) for core in topology.cores.values())
        case None:
            return cpus
