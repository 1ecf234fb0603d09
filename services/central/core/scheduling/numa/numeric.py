"""`best_sets` finds the sets of NUMA nodes for a container (docs/facts/scheduling.md#numa-nodes).

Aligned resources share one set, whose size is fixed: no set below the largest of their minimum counts has enough, and
none above it has the minimum count of any. Other resources may have separate sets that contain one another. A superset
of a sufficient set is sufficient for them, so the whole machine is the last resort. This keeps the search small: at
most 70 sets of a size, and chains of sets of fixed sizes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from services.central.core.scheduling.amounts import Amounts
from services.central.core.scheduling.numa.machine import Machine
from services.central.core.scheduling.numa.room import Room, asked_for

Nodes = frozenset[int]
Choice = dict[str, Nodes]

MOST_PREFERENCES = 4
"""Unaligned resources, by name, that get their minimum count if possible. Each further one doubles the search."""


def least_count(name: str, amount: int, machine: Machine) -> int:
    """The fewest NUMA nodes whose capacities reach an amount, the largest taken first."""
    total = 0
    capacities = sorted((node.capacity.get(name, 0) for node in machine.numas), reverse=True)
    for count, capacity in enumerate(capacities, 1):
        total += capacity
        if total >= amount:
            return count
    return len(capacities)


def best_sets(requests: Amounts, room: Room, aligned: frozenset[str]) -> dict[str, Nodes] | None:
    """Return the nodes of each resource that NUMA nodes list, and allocate it there; None: the container does not
    fit."""
    machine = room.machine
    listed = {name for node in machine.numas for name in node.capacity}
    asked = {name: amount for name, amount in sorted(asked_for(requests).items()) if name in listed}
    least = {name: least_count(name, amount, machine) for name, amount in asked.items()}
    best = _Search(room, asked, least, [name for name in asked if name in aligned]).best()
    for name, nodes in (best or {}).items():
        room.allocate(name, asked[name], nodes)
    return best


@dataclass(frozen=True, slots=True)
class _Search:
    """One container's amounts and minimum counts by resource, ascending by name, and which of them are aligned."""

    room: Room
    asked: Amounts
    least: Mapping[str, int]
    aligned: Sequence[str]

    def best(self) -> Choice | None:
        """With the most preferred counts, of those the one whose largest set is smallest, then by size and ids."""
        everywhere = frozenset(node.id for node in self.room.machine.numas)
        others = [name for name in self.asked if name not in self.aligned]
        if not all(self._has(name, everywhere) for name in others):
            return None
        smallest = {name: self._sets(name, everywhere) for name in others[:MOST_PREFERENCES]}
        for count in range(len(smallest), -1, -1):
            found = (
                (shared, self._whole(shared, chosen, others))
                for preferred in combinations(smallest, count)
                for shared in self._common()
                for chosen in _nested(shared, {name: smallest[name] for name in preferred})
            )
            # Where each has its minimum count all sizes are given, and sets come in order: the first one is the best.
            best = next(found, None) if count == len(others) else min(found, key=_rank, default=None)
            if best is not None:
                shared, sets = best
                return dict.fromkeys(self.aligned, shared) | sets
        return None

    def _has(self, name: str, nodes: Nodes) -> bool:
        return len(nodes) >= self.least[name] and self.room.on(nodes, name) >= self.asked[name]

    def _common(self) -> Iterator[Nodes]:
        """Yield sets that are sufficient for all aligned resources; the empty set, which is in every other, without
        any."""
        if not self.aligned:
            return iter([frozenset()])
        size = max(self.least[name] for name in self.aligned)
        alone = [name for name in self.aligned if name in self.room.alone]
        if size > 1 and not alone:
            return iter(())
        sockets = {node.id: node.socket for node in self.room.machine.numas}
        usable = sorted(sockets.keys() & set.intersection(set(sockets), *(self.room.idle(name) for name in alone)))
        sets = (frozenset(ids) for ids in combinations(usable, size))
        return (
            nodes
            for nodes in sets
            if (size > self.room.machine.per_socket or len({sockets[node_id] for node_id in nodes}) == 1)
            and all(self._has(name, nodes) for name in self.aligned)
        )

    def _sets(self, name: str, within: Nodes) -> list[Nodes]:
        """The sets of minimum count that do for a resource."""
        free = [(node_id, self.room.of(node_id, name)) for node_id in sorted(within)]
        sets = combinations(free, self.least[name])
        return [frozenset(node for node, _ in some) for some in sets if sum(n for _, n in some) >= self.asked[name]]

    def _whole(self, shared: Nodes, chosen: Choice, others: Sequence[str]) -> Choice:
        """Extend the choice by resources that do not get their minimum count: on the smallest set that contains all
        the others."""
        rest = [name for name in others if name not in chosen]
        if not rest:
            return chosen
        inner = max((shared, *chosen.values()), key=len)
        outside = sorted({node.id for node in self.room.machine.numas} - inner)
        around = (inner.union(ids) for more in range(len(outside) + 1) for ids in combinations(outside, more))
        place = next(nodes for nodes in around if all(self._has(name, nodes) for name in rest))
        return {name: chosen.get(name, place) for name in others}


def _nested(shared: Nodes, levels: Mapping[str, Sequence[Nodes]]) -> Iterator[Choice]:
    """Yield every choice of one set per resource in which any two contain one another, including the shared one."""

    def further(chosen: Choice, names: Sequence[str]) -> Iterator[Choice]:
        if not names:
            yield chosen
            return
        for nodes in levels[names[0]]:
            if all(nodes <= other or other <= nodes for other in (shared, *chosen.values())):
                yield from further({**chosen, names[0]: nodes}, names[1:])

    return further({}, list(levels))


def _rank(found: tuple[Nodes, Choice]) -> tuple[int, list[tuple[int, list[int]]]]:
    shared, sets = found
    every = [shared, *sets.values()]
    return max(map(len, every)), [(len(nodes), sorted(nodes)) for nodes in every]
