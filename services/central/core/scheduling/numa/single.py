"""`lowest_node` finds the one NUMA node that a container gets (docs/facts/scheduling.md#numa-nodes)."""

from services.central.core.scheduling.amounts import Amounts
from services.central.core.scheduling.numa.room import Room, asked_for


def lowest_node(requests: Amounts, room: Room) -> int | None:
    """Return the lowest node with enough of everything, and allocate it there; None if there is none."""
    numas = room.machine.numas
    asked = asked_for(requests)
    for name in asked.keys() - {name for node in numas for name in node.allocatable}:
        if _is_kubelets(name):
            return None
        del asked[name]
    for node in numas:
        if all(node.id in room.idle(name) for name in asked if name in room.alone) and all(
            room.left[node.id].get(name, -1) >= amount for name, amount in asked.items()
        ):
            for name, amount in asked.items():
                room.allocate(name, amount, [node.id])
            return node.id
    return None


def _is_kubelets(name: str) -> bool:
    """Return whether kubelet itself manages a resource; other devices may belong to no NUMA node."""
    return "/" not in name or "kubernetes.io/" in name
