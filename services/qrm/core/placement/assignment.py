"""The assignment gives pods CPUs and memory nodes of their own: dedicated, NUMA-bound, or in a named pool.

A pod keeps its CPUs: it is placed again only if they are gone or no longer fit, and then takes over what still fits
(docs/facts/katalyst-cpu.md#who-takes-first). Pods that hold CPUs come first, then by name; the same pods and the same
machine give the same sets in any order of the list.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from services.qrm.core.placement.dedicated_pods import Assigning, Owned, preferences_unmet, serve_dedicated
from services.qrm.core.placement.own_pools import PoolKey, PoolRoom, size_pools
from services.qrm.core.placement.requests import CpuRequest
from shared.core.cgroups.layout import RECLAIM
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.balanced import NOT_ENOUGH_CPUS, take_by_numa_balance
from shared.core.cpus.topology import Topology
from shared.errors import Refused


@dataclass(frozen=True, slots=True)
class Assignment:
    """Own sets by pod UID, and by pod (namespace/name) why it stays in its class's pool, or what it has instead."""

    owned: Mapping[str, Owned] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    otherwise: Mapping[str, str] = field(default_factory=dict)
    """Pods that have CPUs of their own, though not such as they prefer."""

    @property
    def cpus(self) -> CpuSet:
        """All CPUs that pods have for themselves."""
        whole = CpuSet()
        for own in self.owned.values():
            whole |= own.cpus
        return whole


@dataclass(frozen=True, slots=True)
class Supply:
    """What can be given to pods: all CPUs except the reserve, and the memory of each NUMA node.

    A NUMA node whose memory is unknown holds any request. `keep` CPUs always remain for the shared and the reclaimed
    pool together.
    """

    topology: Topology
    free: CpuSet
    memory_bytes: Mapping[int, int]
    keep: int = 2


def assign(
    supply: Supply, requests: Sequence[CpuRequest], held: Mapping[str, CpuSet], shared_cores: float = 0.0
) -> Assignment:
    """Serve every request that can be served.

    Args:
        supply: what may be given away.
        requests: of the pods that run here, in any order.
        held: what pods have had so far, by UID.
        shared_cores: what the pods of the shared pool ask for; pools by name or NUMA node leave that much free.
    """
    state = Assigning(supply.topology, supply.free, dict(supply.memory_bytes), supply.keep, held)
    order = sorted(requests, key=lambda request: _turn(request, held.get(request.uid, CpuSet())))
    # Whole CPUs of a node are the hardest to find, so they come before pools, which fit in anywhere.
    problems = serve_dedicated(state, order)
    pools, unbound = _pools_asked_for(state, order)
    problems |= unbound
    room = PoolRoom({(numa,): len(state.inside(numa)) for numa in state.topology.numas}, len(state.free), supply.keep)
    holds = {key: any(held.get(member.uid) for member in members) for key, members in pools.items()}
    # Pods that could not be served run in the shared pool, which must have room for them.
    unserved = [request for request in requests if request.kind != "bound-reclaim" and request.key in problems]
    shared_cores += sum(request.asked for request in unserved)
    found = size_pools(pools, room, holds, shared_cores)
    problems |= found.problems
    # Pools bound to no NUMA node go last: they fit in wherever the bound ones leave room.
    for numas in sorted({numas for _, numas in found.cpus}, key=lambda numas: (not numas, numas)):
        _share_out(state, numas, {key: pools[key] for key in found.cpus if key[1] == numas}, found.cpus)
    otherwise = preferences_unmet(state, requests)
    return Assignment(dict(sorted(state.owned.items())), dict(sorted(problems.items())), otherwise)


def _turn(request: CpuRequest, held: CpuSet) -> tuple[bool, bool, bool, str, str]:
    """Sort key of a request: pods that have CPUs come first, so that no newcomer takes them; then pods that need
    particular CPUs.

    A pod that is bound to CPUs only by an annotation, which its author can write, therefore gets no CPU of a settled
    pod.
    """
    settled = bool(held) and len(held) == request.cpus
    return not settled, not held, not request.bound_cpus, request.key, request.uid


def _pools_asked_for(
    state: Assigning, requests: Sequence[CpuRequest]
) -> tuple[dict[PoolKey, list[CpuRequest]], dict[str, str]]:
    """Return the pools besides the shared one with their pods, and why some pods are in none."""
    pools: dict[PoolKey, list[CpuRequest]] = {}
    problems: dict[str, str] = {}
    for request in (r for r in requests if r.kind in ("bound-share", "named-share")):
        try:
            numas = _bound_node(state, request, pools) if request.kind == "bound-share" else ()
        except Refused as refusal:
            problems[request.key] = str(refusal)
        else:
            pools.setdefault((request.pool, numas), []).append(request)
    return pools, problems


def bind_reclaimed(
    topology: Topology, requests: Sequence[CpuRequest], pool: CpuSet, held: Mapping[str, CpuSet]
) -> Assignment:
    """Bind reclaimed pods that request it to the reclaimed pool's CPUs of one NUMA node, which the pool keeps.

    A pod stays on its node for as long as the pool has a CPU there; otherwise it gets the node where the pool has the
    most.
    """
    owned, problems = {}, {}
    inside = {numa: cpus & pool for numa, cpus in topology.numas.items()}
    for request in sorted((r for r in requests if r.kind == "bound-reclaim"), key=lambda r: (r.key, r.uid)):
        before = held.get(request.uid, CpuSet())
        nodes = [n for n, cpus in inside.items() if cpus and (not request.numa_ids or n in request.numa_ids)]
        if not nodes:
            problems[request.key] = f"the reclaimed pool ({pool}) has no CPU on NUMA nodes {list(request.numa_ids)}"
            continue
        numa = max(nodes, key=lambda n: (bool(before & topology.numas[n]), len(inside[n]), -n))
        owned[request.uid] = Owned(RECLAIM, inside[numa], (numa,))
    return Assignment(owned, problems)


def _bound_node(
    state: Assigning, request: CpuRequest, pools: Mapping[PoolKey, Sequence[CpuRequest]]
) -> tuple[int, ...]:
    """Return the one NUMA node of a bound shared pod: its current one, otherwise the one with the most room.

    Raises:
        Refused: `not_enough_cpus`, no node holds it.
    """
    held = state.held.get(request.uid, CpuSet())
    asked = dict.fromkeys(state.topology.numas, 0.0)
    for (_, numas), members in pools.items():
        for numa in numas:
            asked[numa] += sum(member.request_cores for member in members)
    room = {n: len(state.inside(n)) - asked[n] for n in asked if not request.numa_ids or n in request.numa_ids}
    fits = [n for n, left in room.items() if left >= request.request_cores and state.inside(n)]
    if not fits:
        raise Refused(
            f"{request.request_cores:g} CPUs wanted on one NUMA node, room by node {room}", reason=NOT_ENOUGH_CPUS
        )
    # Stay on the current node if there is room: after a move, a bound pod's memory would be on another node.
    before = [n for n in fits if held and held <= state.topology.numas[n]]
    return (before[0],) if before else (max(fits, key=lambda n: (room[n], -n)),)


def _share_out(
    state: Assigning,
    numas: tuple[int, ...],
    pools: Mapping[PoolKey, Sequence[CpuRequest]],
    sizes: Mapping[PoolKey, int],
) -> None:
    """Assign the CPUs of the pools of one NUMA node, or of the unbound pools. A pool grows and shrinks from what it
    has."""
    inside = state.free if not numas else state.inside(numas[0])
    held = {
        key: CpuSet(_mask(state.held.get(member.uid, CpuSet()) & inside for member in members))
        for key, members in pools.items()
    }
    for key, members in pools.items():
        others = CpuSet(_mask(cpus for other, cpus in held.items() if other != key))
        own, free, size = held[key] & state.free, (inside & state.free) - held[key], sizes[key]
        if len(own) >= size:
            cpus = take_by_numa_balance(state.topology, own, size)
        else:
            # Not on CPUs that another pool has, if possible: a pool that grows would push that one to other CPUs.
            apart = free - others if len(free - others) >= size - len(own) else free
            cpus = own | take_by_numa_balance(state.topology, apart, size - len(own))
        for member in members:
            state.give(member, Owned(f"{key[0]}-NUMA{numas[0]}" if numas else key[0], cpus, numas))


def _mask(sets: Iterable[CpuSet]) -> int:
    mask = 0
    for cpus in sets:
        mask |= cpus.mask
    return mask
