"""`numa_score` scores how well a machine suits a bound pod (docs/facts/scheduling.md#numa-nodes)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import variance
from typing import Literal

from services.central.core.scheduling.amounts import Amounts
from services.central.core.scheduling.numa.binding import BindablePod, NumaBinding
from services.central.core.scheduling.numa.machine import Machine
from services.central.core.scheduling.numa.numeric import least_count
from services.central.core.scheduling.numa.room import Room, asked_for

NumaStrategy = Literal["least_allocated", "most_allocated", "balanced"]
MAX_SCORE = 100


@dataclass(frozen=True, slots=True)
class NumaScoring:
    """The strategy, and the weight of each resource; an unnamed weight, or one below 1, is 1."""

    strategy: NumaStrategy = "least_allocated"
    weights: Mapping[str, int] = field(default_factory=dict)

    def of(self, asked: Amounts, free: Amounts) -> int:
        """The score of one set of nodes, 0 to 100; 0: the container would not fit."""
        if self.strategy == "balanced":
            return _balanced([_fraction(amount, free[name]) for name, amount in asked.items()])
        total = sum(self._one(amount, free[name]) * self._weight(name) for name, amount in asked.items())
        return total // sum(map(self._weight, asked))

    def _one(self, asked: int, free: int) -> int:
        if asked > free or not free:
            return 0
        return (asked if self.strategy == "most_allocated" else free - asked) * MAX_SCORE // free

    def _weight(self, name: str) -> int:
        return max(1, self.weights.get(name, 1))


@dataclass(frozen=True, slots=True)
class NumaScore:
    """The machine's score, and those of the containers that ask for anything that is scored."""

    score: int
    containers: Mapping[str, int] = field(default_factory=dict)


def numa_score(pod: BindablePod, binding: NumaBinding, machine: Machine, scoring: NumaScoring) -> NumaScore:
    """Return the mean of the containers' scores, each computed as if it came alone."""
    if not binding.concerns(pod):
        return NumaScore(MAX_SCORE)
    if not binding.serves(machine):
        return NumaScore(0)
    room = Room(machine, binding.aligned if binding.exclusive(pod) else ())
    scores: dict[str, int] = {}
    for name, requests in binding.asks(pod, machine):
        asked = asked_for(requests)
        if binding.policy == "dynamic":
            asked = {resource: amount for resource, amount in asked.items() if resource in binding.aligned}
        if asked:
            found = (scoring.of(asked, free) for free in _free(asked, room))
            scores[name] = min((score for score in found if score > 0), default=0)
    return NumaScore(sum(scores.values()) // len(scores) if scores else MAX_SCORE, scores)


def _free(asked: Amounts, room: Room) -> Iterator[dict[str, int]]:
    """Yield what is free on each node, or on each minimal set for an exclusive container; equal ones once."""
    machine, count = room.machine, 1
    if room.alone and machine.topology_policy == "numeric_container":
        count = max(least_count(name, amount, machine) for name, amount in asked.items())
    usable = [room.idle(name) if name in room.alone else room.left.keys() for name in asked]
    rows = [
        tuple(room.of(node_id, name) if node_id in nodes else 0 for name, nodes in zip(asked, usable, strict=True))
        for node_id in room.left
    ]
    for amounts in {tuple(map(sum, zip(*some, strict=True))) for some in combinations(rows, count)}:
        yield dict(zip(asked, amounts, strict=True))


def _fraction(asked: int, free: int) -> float:
    return asked / free if free else 1.0


def _balanced(fractions: Sequence[float]) -> int:
    if max(fractions) > 1:
        return 0
    return int((1 - (variance(fractions) if len(fractions) > 1 else 0)) * MAX_SCORE)
