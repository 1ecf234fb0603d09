"""`shape_of` takes reserve pool and dedicated pods off the machine's CPUs, NUMA node by NUMA node."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from services.advisor.core.model.machine import Bounds, reclaim_floor_cpus
from services.advisor.core.model.shape import NodeCpus, Shape
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.sizing.regions import plain
from services.advisor.core.sizing.reserves import kept_for_reclaim


def shape_of(view: View) -> Shape:
    """The shape of a machine with room for disjoint pools."""
    taken = () if plain(view.containers) else tuple(map(_Taken.of, _dedicated_pods(view.containers)))
    return _shape(view.bounds, view.numas, taken)


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a dedicated pod removes: its CPUs by NUMA node, or a number of CPUs while it has not been placed."""

    cpus_per_numa: tuple[tuple[int, int], ...]
    cpus: int

    @classmethod
    def of(cls, container: ContainerView) -> "_Taken":
        # Rounded up: it will get whole CPUs.
        return cls(container.cpus_per_numa, -int(-container.request_cores // 1))


# As long as machine and dedicated pods are the same it is the same object.
@lru_cache(maxsize=64)
def _shape(bounds: Bounds, numas: tuple[tuple[int, int], ...], dedicated: tuple[_Taken, ...]) -> Shape:
    cpus = dict(numas) or {0: bounds.cpus}
    available = _without_reserve(bounds, cpus)
    for taken in dedicated:
        _subtract(available, taken)
    kept = kept_for_reclaim(cpus, reclaim_floor_cpus(bounds.cpus))
    node = NodeCpus(
        available=available,
        # Where dedicated pods have nearly everything, what is left is divided between tenants and reclaimed pods.
        kept_for_reclaim={numa: min(size, available[numa] // 2) for numa, size in kept.items()},
        reserve_pool_cpus=bounds.reserve_pool_cpus,
        unit=2 if bounds.smt else 1,
    )
    return Shape(node, cpus, bounds.smt, bounds.reserve_cores, bounds.min_share_cpus, spread=True)


def _without_reserve(bounds: Bounds, cpus: dict[int, int]) -> dict[int, int]:
    """Remove the reserve pool's CPUs from the nodes in turn, as qrm places it."""
    available, left = dict(cpus), bounds.reserve_pool_cpus
    while left > 0:
        for numa in sorted(available):
            if left > 0 and available[numa] > 0:
                available[numa] -= 1
                left -= 1
    return available


def _dedicated_pods(containers: Iterable[ContainerView]) -> Iterable[ContainerView]:
    """Return one container of each dedicated pod with known CPUs, because its containers share them; of other pods
    every container."""
    seen: set[str] = set()
    for container in containers:
        if container.dedicated and (not container.cpus_per_numa or container.uid not in seen):
            seen.add(container.uid)
            yield container


def _subtract(available: dict[int, int], taken: _Taken) -> None:
    """Remove a dedicated pod's CPUs: where they are, or from the node with most CPUs while it has not been placed."""
    if taken.cpus_per_numa:
        for numa, cpus in taken.cpus_per_numa:
            if numa in available:
                available[numa] = max(0, available[numa] - cpus)
        return
    left = taken.cpus
    for numa in sorted(available, key=lambda numa: (-available[numa], numa)):
        part = min(left, available[numa])
        available[numa] -= part
        left -= part
