"""`NumaBinding` decides which pods are bound to NUMA nodes, and which of their resources
(docs/facts/scheduling.md#numa-nodes)."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.central.core.scheduling.amounts import Amounts, effective_request
from services.central.core.scheduling.numa.machine import MOST_NUMAS, Machine, Policy, TopologyPolicy
from shared.contracts.pod import QosClass
from shared.core.cgroups.kube_qos import kube_qos

ALIGNED = frozenset({"cpu", "memory"})
POD = "pod"
"""Stands for all containers if the pod is placed as a whole."""

_SERVED: Mapping[Policy, frozenset[TopologyPolicy]] = {
    "native": frozenset({"single_numa_container", "single_numa_pod"}),
    "dynamic": frozenset({"single_numa_container", "numeric_container"}),
}


@dataclass(frozen=True, slots=True)
class BindableContainer:
    """One container; `limits` None: not written, so they are its requests."""

    name: str
    requests: Amounts
    limits: Amounts | None = None
    init: bool = False
    sidecar: bool = False


@dataclass(frozen=True, slots=True)
class BindablePod:
    """What decides whether a pod is bound."""

    containers: tuple[BindableContainer, ...]
    qos: QosClass = "shared_cores"
    numa_binding: bool = False
    numa_exclusive: bool = False


@dataclass(frozen=True, slots=True)
class NumaBinding:
    """Who binds, and which resources must be on the same nodes."""

    policy: Policy = "dynamic"
    aligned: frozenset[str] = ALIGNED

    def concerns(self, pod: BindablePod) -> bool:
        """Whether pods of this kind are bound at all."""
        if self.policy == "dynamic":
            return pod.qos == "dedicated_cores" and pod.numa_binding
        amounts = [(one.requests, one.requests if one.limits is None else one.limits) for one in pod.containers]
        whole = all(requests.get("cpu", 0) % 1000 == 0 for requests, _ in amounts)
        return whole and kube_qos(amounts) == "Guaranteed"

    def serves(self, machine: Machine) -> bool:
        """Return whether the machine binds in a known way.

        Machines with more nodes than kubelet supports are left to the node itself, because a pod must not be refused
        without a search.
        """
        small = len(machine.numas) <= MOST_NUMAS or machine.topology_policy != "numeric_container"
        return small and machine.topology_policy in _SERVED[self.policy]

    def exclusive(self, pod: BindablePod) -> bool:
        """Whether the pod wants its NUMA nodes for itself."""
        return self.policy == "dynamic" and pod.numa_exclusive

    def asks(self, pod: BindablePod, machine: Machine) -> list[tuple[str, Amounts]]:
        """Return what is placed, in order; init containers have ended by then, and an agent leaves sidecars unbound."""
        running = [one for one in pod.containers if not one.init]
        if machine.topology_policy == "single_numa_pod":
            init = [one.requests for one in pod.containers if one.init]
            return [(POD, effective_request(init, [one.requests for one in running], {}))]
        return [(one.name, one.requests) for one in running if not (one.sidecar and self.policy == "dynamic")]
