"""`Room` is what is left on a machine's NUMA nodes while the containers of one pod are placed."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from services.central.core.scheduling.amounts import Amounts
from services.central.core.scheduling.numa.machine import Machine


@dataclass(slots=True)
class Room:
    """What is left by node and resource; resources in `alone` go to one container completely, or not at all."""

    machine: Machine
    alone: Collection[str] = ()
    left: dict[int, dict[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with what is available."""
        self.left = {node.id: dict(node.available) for node in self.machine.numas}

    def idle(self, name: str) -> set[int]:
        """Return the nodes on which a resource is entirely free."""
        return {node.id for node in self.machine.numas if self.of(node.id, name) == node.allocatable.get(name, 0)}

    def of(self, node_id: int, name: str) -> int:
        """Return what is left of a resource on one node."""
        return self.left[node_id].get(name, 0)

    def on(self, nodes: Iterable[int], name: str) -> int:
        """Return what is left of a resource on several nodes together."""
        return sum(self.of(node_id, name) for node_id in nodes)

    def allocate(self, name: str, amount: int, nodes: Iterable[int]) -> None:
        """Allocate an amount of a resource, from the lowest node on; an exclusive resource is allocated completely."""
        for node_id in sorted(nodes):
            there = self.of(node_id, name)
            given = there if name in self.alone else min(there, amount)
            if given:
                self.left[node_id][name] = there - given
            amount -= given


def asked_for(requests: Amounts) -> dict[str, int]:
    """Return the requests that are not zero."""
    return {name: amount for name, amount in requests.items() if amount > 0}
