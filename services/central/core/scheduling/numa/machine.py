"""A machine's NUMA nodes as placement sees them (docs/facts/scheduling.md#numa-nodes)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Self

from services.central.core.scheduling.amounts import Amounts

TopologyPolicy = Literal["single_numa_container", "single_numa_pod", "numeric_container", "none"]
Policy = Literal["native", "dynamic"]
"""Who binds: kubelet's own managers (`native`), or an agent that leaves shared CPUs to others (`dynamic`)."""
MOST_NUMAS = 8
"""As many as kubelet's topology manager takes; the sets of more could not be looked through in time."""


@dataclass(frozen=True, slots=True)
class NumaTaken:
    """What one pod is bound to here."""

    requests: Amounts
    dedicated: bool = False


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node: `available` is what may still be bound of what is allocatable."""

    id: int
    allocatable: Amounts
    available: Amounts
    capacity: Amounts
    socket: int = 0

    @classmethod
    def of(cls, node_id: int, socket: int, amounts: tuple[Amounts, Amounts], taken: Iterable[Amounts]) -> Self:
        """A node of its allocatable amounts and capacity, less what was taken of it."""
        allocatable, capacity = amounts
        available = dict(allocatable)
        for requests in taken:
            for name in available.keys() & requests.keys():
                available[name] = max(0, available[name] - requests[name])
        return cls(node_id, allocatable, available, capacity, socket)


@dataclass(frozen=True, slots=True)
class Machine:
    """The NUMA nodes of one machine, ascending by id, and how its pods are bound."""

    topology_policy: TopologyPolicy
    numas: tuple[NumaNode, ...]
    per_socket: int = field(init=False)

    def __post_init__(self) -> None:
        """Work out what does not depend on a pod."""
        sockets = len({node.socket for node in self.numas})
        object.__setattr__(self, "per_socket", len(self.numas) // sockets if sockets else 0)


def counted(allocations: Iterable[NumaTaken], policy: Policy) -> list[Amounts]:
    """Return the allocations that count: under `dynamic` only those of dedicated pods, because the others give way."""
    return [one.requests for one in allocations if one.dedicated or policy == "native"]
