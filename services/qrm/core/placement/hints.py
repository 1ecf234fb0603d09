"""Hints name the NUMA nodes that suit a pod, one list per resource, and are merged as a topology manager does.

A provider says for one resource which sets of NUMA nodes could hold the request, and which of them it prefers; the
merge keeps the sets that suit all. Further resources join by adding their list under their name.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

ALL_SUBSETS_UP_TO = 8
"""NUMA nodes up to which every subset is tried, as kubelet's limit is; above, single nodes, pairs and all together."""


@dataclass(frozen=True, slots=True)
class Hint:
    """NUMA nodes, ascending, that can hold a request."""

    numas: tuple[int, ...]
    preferred: bool


def hints(amounts: Mapping[int, int], need: int, *, exactly: int | None = None) -> tuple[Hint, ...]:
    """Return the sets of nodes whose free amounts together cover the need; the smallest ones are preferred.

    Args:
        amounts: what is free on each node, in any unit (CPUs, bytes); nodes that must not be used are left out.
        need: in the same unit.
        exactly: only sets of so many nodes (`numa_number`).
    """
    fitting = [
        numas
        for numas in _subsets(sorted(amounts))
        if (exactly is None or len(numas) == exactly) and sum(amounts[numa] for numa in numas) >= need
    ]
    fewest = min(map(len, fitting), default=0)
    return tuple(Hint(numas, len(numas) == fewest) for numas in fitting)


def merge(by_resource: Mapping[str, Sequence[Hint]], order: Mapping[int, int] | None = None) -> Hint | None:
    """Return the best set of nodes that every resource accepts; None if there is none.

    One hint of each resource is combined at a time: the nodes common to them, preferred if all are. Preferred comes
    before not preferred, fewer nodes before more, then by `order` (lower first, 0 for unnamed nodes), then by id. Only
    a set that every resource offers itself counts, because half of a preferred pair may hold nothing.
    """
    offered: list[Collection[tuple[int, ...]]] = [{h.numas for h in found} for found in by_resource.values()]
    merged: dict[tuple[int, ...], bool] = {}
    for combination in product(*by_resource.values()):
        common = tuple(sorted(set.intersection(*(set(hint.numas) for hint in combination)))) if combination else ()
        if common and all(common in sets for sets in offered):
            merged[common] = merged.get(common, False) or all(hint.preferred for hint in combination)
    ranks = order or {}
    best = min(merged, key=lambda n: (not merged[n], len(n), sum(ranks.get(i, 0) for i in n), n), default=None)
    return None if best is None else Hint(best, merged[best])


def _subsets(numas: Sequence[int]) -> Iterator[tuple[int, ...]]:
    sizes = range(1, len(numas) + 1) if len(numas) <= ALL_SUBSETS_UP_TO else (1, 2, len(numas))
    for size in sizes:
        yield from combinations(numas, size)
