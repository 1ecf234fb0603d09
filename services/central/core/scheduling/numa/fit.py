"""`numa_fit` decides where the containers of a bound pod would be (docs/facts/scheduling.md#numa-nodes)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.central.core.scheduling.amounts import Amounts
from services.central.core.scheduling.numa.binding import BindablePod, NumaBinding
from services.central.core.scheduling.numa.machine import Machine
from services.central.core.scheduling.numa.numeric import best_sets
from services.central.core.scheduling.numa.room import Room
from services.central.core.scheduling.numa.single import lowest_node


@dataclass(frozen=True, slots=True)
class NumaPlaces:
    """Whether the pod is bound here at all, whether it fits, and each container's nodes, ascending."""

    applies: bool
    fits: bool = True
    nodes: Mapping[str, list[int]] = field(default_factory=dict)


def numa_fit(pod: BindablePod, binding: NumaBinding, machine: Machine) -> NumaPlaces:
    """Place the containers one after the other, each in what the ones before it left."""
    if not binding.concerns(pod) or not binding.serves(machine):
        return NumaPlaces(applies=False)
    room = Room(machine, binding.aligned if binding.exclusive(pod) else ())
    places: dict[str, list[int]] = {}
    for name, requests in binding.asks(pod, machine):
        nodes = _nodes_for(requests, room, binding.aligned)
        if nodes is None:
            return NumaPlaces(applies=True, fits=False)
        places[name] = nodes
    return NumaPlaces(applies=True, nodes=places)


def _nodes_for(requests: Amounts, room: Room, aligned: frozenset[str]) -> list[int] | None:
    if room.machine.topology_policy != "numeric_container":
        node = lowest_node(requests, room)
        return None if node is None else [node]
    sets = best_sets(requests, room, aligned)
    if sets is None:
        return None
    shown = [nodes for name, nodes in sets.items() if name in aligned] or list(sets.values())
    return sorted(frozenset().union(*shown))
