"""How many CPUs each NUMA node gives, so that few nodes give evenly and the machine is left even.

Facts: docs/facts/katalyst-cpu.md#distributed-taking, here in whole numbers only. Two things are done better than there:

- nodes with equally many free CPUs are the same to the rule, so of all choices that read the same only the first is
  looked at, and a choice whose most even outcome is no better than the best so far is left at once: neither changes
  the result, and a machine of many like nodes costs no more than one of few;
- a choice of nodes that could hold the rest by number but not in groups is passed over instead of tried for ever.
"""

import heapq
from collections.abc import Iterator, Sequence
from math import isqrt

Part = tuple[int, int]
"""Index of a node in the order given, and how many CPUs to take there."""

MOST_STEPS = 20_000
"""Choices looked at before the best so far stands. Nine nodes have fewer in all (3^9), whatever is free on them."""


def even_parts(free: Sequence[int], count: int, group: int, fewest: int) -> list[Part] | None:
    """The parts of the most even split of `count` CPUs over as few nodes as possible, in the order of taking.

    Args:
        free: available CPUs of each node that has any, in the packed rule's order.
        count: CPUs wanted, a multiple of `group`.
        group: CPUs that stay together in one node.
        fewest: nodes to begin with.

    Returns:
        Parts of every chosen node alike, then the rest group by group; None where no even split exists.
    """
    search = _Search(free, count, group)
    for nodes in range(fewest, min(count // group, len(free)) + 1):
        if (parts := search.best(nodes)) is not None:
            return parts
    return None


class _Search:
    """Looks for the choice of nodes whose taking leaves the smallest standard deviation of free CPUs over all nodes.

    Mean and deviation are rounded to thousandths of a CPU, half away from zero, so that nearly equal is equal.
    """

    def __init__(self, free: Sequence[int], count: int, group: int) -> None:
        self._free, self._count, self._group = free, count, group
        self._steps = 0
        nodes = max(1, len(free))
        self._mean_thousandths = (2000 * (sum(free) - count) + nodes) // (2 * nodes)
        self._untouched = sum(map(self._cost, free))

    def best(self, nodes: int) -> list[Part] | None:
        """The parts of the first choice of so many nodes with the strictly smallest balance; None where none fits."""
        share = self._count // nodes // self._group * self._group
        able = [node for node, cpus in enumerate(self._free) if cpus >= share]
        if not self._hold_all(sorted((self._free[node] for node in able), reverse=True)[:nodes]):
            return None
        best, parts = None, None
        for chosen in _choices([self._free[node] for node in able], nodes):
            if best == 0 or not self._has_step():
                break
            members = [able[index] for index in chosen]
            free = [self._free[member] for member in members]
            if not self._hold_all(free):
                continue
            found = self._rest(free, share, best)
            if found is not None:
                best, givers = found
                parts = [(m, share) for m in members if share] + [(members[giver], self._group) for giver in givers]
        return parts

    def _rest(self, free: Sequence[int], share: int, below: int | None) -> tuple[int, list[int]] | None:
        """Balance, and who gives a group each in turn, once every member gave its share; None unless below `below`."""
        groups = (self._count - share * len(free)) // self._group
        left = [cpus - share for cpus in free]
        others = self._untouched - sum(map(self._cost, free))
        least = self._balance(others, _taken_from_largest(left, groups, self._group))
        if below is not None and least >= below:
            return None
        if groups == 0:
            return least, []
        best: tuple[int, list[int]] | None = None
        limit = below
        able = [member for member, cpus in enumerate(left) if cpus >= self._group]
        for size in range(len(able), 0, -1):
            for chosen in _choices([left[member] for member in able], size):
                if not self._has_step():
                    return best
                givers = _givers([able[index] for index in chosen], left, groups, self._group)
                if givers is None:
                    continue
                after = list(left)
                for giver in givers:
                    after[giver] -= self._group
                balance = self._balance(others, after)
                if limit is None or balance < limit:
                    limit, best = balance, (balance, givers)
                if limit == least:
                    return best
        return best

    def _hold_all(self, free: Sequence[int]) -> bool:
        return sum(cpus // self._group for cpus in free) * self._group >= self._count

    def _has_step(self) -> bool:
        self._steps += 1
        return self._steps <= MOST_STEPS

    def _cost(self, cpus: int) -> int:
        return (1000 * cpus - self._mean_thousandths) ** 2

    def _balance(self, others: int, left: Sequence[int]) -> int:
        """The standard deviation in thousandths of a CPU, rounded: `others` is the cost of the nodes that give none."""
        variance_times_four = 4 * (others + sum(map(self._cost, left))) // len(self._free)
        return (isqrt(variance_times_four) + 1) // 2


def _choices(values: Sequence[int], size: int, start: int = 0) -> Iterator[tuple[int, ...]]:
    """Indices of `size` of the values, in lexicographic order; of choices that read the same only the first."""
    if size == 0:
        yield ()
        return
    seen: set[int] = set()
    for index in range(start, len(values) - size + 1):
        if values[index] not in seen:
            seen.add(values[index])
            for rest in _choices(values, size - 1, index + 1):
                yield index, *rest


def _taken_from_largest(left: Sequence[int], groups: int, group: int) -> list[int]:
    """What is left where each group comes from the node with most left: nothing leaves the nodes more even."""
    heap = [-cpus for cpus in left]
    heapq.heapify(heap)
    for _ in range(groups):
        heapq.heapreplace(heap, heap[0] + group)
    return [-cpus for cpus in heap]


def _givers(nodes: Sequence[int], left: Sequence[int], groups: int, group: int) -> list[int] | None:
    """Who gives the next group, turn by turn over the nodes that still have one; None where they cannot give all."""
    able = {node: left[node] // group for node in nodes}
    if sum(able.values()) < groups:
        return None
    givers: list[int] = []
    turn = 0
    while len(givers) < groups:
        turn += 1
        givers += [node for node in nodes if able[node] >= turn]
    return givers[:groups]
