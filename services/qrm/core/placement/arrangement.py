"""The arrangement combines the pools of a node with the pods that have CPUs of their own."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from services.qrm.core.placement.assignment import Assignment, Supply, assign, bind_reclaimed
from services.qrm.core.placement.dedicated import whole_cpus
from services.qrm.core.placement.dedicated_pods import Owned
from services.qrm.core.placement.pools import NO_CPUS, Order, Placement, floor_cpus, place, place_floor, place_reserve
from services.qrm.core.placement.requests import CpuRequest, request_of
from shared.contracts.advice import PoolAdvice, isolation_pool
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import RECLAIM, SHARE
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology

ANYWHERE = -1
"""The NUMA node of a pool that the advice binds to none."""
RAMP_UP = "ramp-up"
"""Pool name of a shared pod whose need is not known yet: it runs on the reclaimed pool's CPUs as well."""


@dataclass(frozen=True, slots=True)
class Node:
    """The machine and its pods.

    `held`: CPUs that pods have had so far, by UID. `pinned`: CPUs that another manager has assigned. `ramping`: UIDs of
    new shared pods. `starting`: UIDs of reclaimed pods whose containers are being started.
    """

    topology: Topology
    memory_bytes: Mapping[int, int]
    pods: Sequence[Pod] = ()
    held: Mapping[str, CpuSet] = field(default_factory=dict)
    pinned: CpuSet = NO_CPUS
    ramping: Collection[str] = ()
    starting: Collection[str] = ()
    pools: Collection[str] | None = None
    """Names that pods may give for a pool of their own; None: any."""

    @property
    def usable(self) -> CpuSet:
        """Every CPU but the pinned ones."""
        return self.topology.all - self.pinned


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Pools, own sets by pod UID, and why some pods (namespace/name) have none.

    `starting` pods, by UID, have those sets instead of their pool's or their own for the moment.
    """

    placement: Placement
    owned: Mapping[str, Owned]
    problems: Mapping[str, str]
    otherwise: Mapping[str, str] = field(default_factory=dict)
    """Pods (namespace/name) whose own set is not as they prefer it, and how."""
    starting: Mapping[str, Owned] = field(default_factory=dict)

    @property
    def pools(self) -> Mapping[str, CpuSet]:
        """The CPUs of the three pools."""
        return self.placement.pools

    @property
    def held(self) -> dict[str, CpuSet]:
        """Return what each pod with CPUs of its own has, for the next arrangement."""
        return {uid: own.cpus for uid, own in self.owned.items() if own.pool != RAMP_UP}


def arrange(node: Node, advice: PoolAdvice, order: Order) -> Arrangement:
    """Arrange a node as an advice says.

    Raises:
        Refused: the advice cannot be followed here.
    """
    # The reserve first: pods with CPUs of their own choose from all CPUs but these.
    reserve = place_reserve(node.topology, advice, node.pinned)
    requests, unread = _requests(node)
    own = _assign(node, node.usable - reserve, _as_advised(node, requests, advice))
    return _whole(node, place(node.topology, advice, order, reserve, own.cpus | node.pinned), own, requests, unread)


def arrange_floor(node: Node, reserve: CpuSet) -> Arrangement:
    """Arrange a node in its safe state: reclaimed work at its floor; pods keep CPUs of their own."""
    reserve = reserve & node.usable
    requests, unread = _requests(node)
    # The reserve belongs to advice that has expired; on a machine that has shrunk it may be everything.
    own = _assign(node, node.usable - reserve or node.usable, requests)
    placement = place_floor(node.topology, reserve, floor_cpus(len(node.topology.cpus)), own.cpus | node.pinned)
    return _whole(node, placement, own, requests, unread)


def _requests(node: Node) -> tuple[list[CpuRequest], dict[str, str]]:
    requests, unread = [], {}
    for pod in node.pods:
        # A pod that has ended is still in the list for a while, and must not keep its CPUs.
        if pod.phase in ("Pending", "Running"):
            request = request_of(pod, node.pools)
            if isinstance(request, str):
                unread[pod.key] = request
            elif request is not None:
                requests.append(request)
    return requests, unread


def _as_advised(node: Node, requests: Sequence[CpuRequest], advice: PoolAdvice) -> list[CpuRequest]:
    """The requests in the sizes advised for their pools, and those of pods that were advised CPUs of their own.

    A pool that is not in the advice, because its pods have only just come, has what they asked for.
    """
    sizes = {(part.pool, part.numa): part.cpus for part in advice.pools if part.of_pods}
    # Without advice about such pools they keep what their pods request.
    if not sizes:
        return list(requests)
    known = {request.uid: request for request in requests}
    pools: dict[tuple[str, int], list[CpuRequest]] = {}
    advised = []
    for pod in node.pods:
        request = _isolated(pod, known.get(pod.uid), {pool for pool, _ in sizes})
        pool = None if request is None else _advised_pool(node, request)
        if request is not None and pool in sizes:
            pools.setdefault(pool, []).append(request)
        elif request is not None:
            advised.append(request)
    return [*advised, *(request for pool, members in pools.items() for request in _shares(members, sizes[pool]))]


def _isolated(pod: Pod, request: CpuRequest | None, advised: Collection[str]) -> CpuRequest | None:
    """The request of a shared pod that leaves its pool; its own request where it does not."""
    pool = isolation_pool(pod.key)
    if pod.qos != "shared_cores" or pool not in advised or pod.phase not in ("Pending", "Running"):
        return request
    if request is not None:
        return replace(request, pool=pool)
    asked_cores = pod.cpu_request_millis / 1000
    return CpuRequest(
        "named-share", pod.uid, pod.key, 0.0, pod.memory_request_bytes, pool=pool, asked_cores=asked_cores
    )


def _advised_pool(node: Node, request: CpuRequest) -> tuple[str, int] | None:
    """Return the pool as the advice names it, with its NUMA node; None if it has no size of its own, or no node yet."""
    if request.kind == "named-share":
        return request.pool, ANYWHERE
    if request.kind != "bound-share":
        return None
    held = node.held.get(request.uid, NO_CPUS)
    numas = [numa for numa, cpus in node.topology.numas.items() if cpus & held]
    # Not placed yet, or astride: no advised pool of one node can mean it, so it is placed by what it asks for.
    if len(numas) != 1:
        return None
    isolated = request.pool == isolation_pool(request.key)
    return request.pool if isolated else f"{request.pool}-NUMA{numas[0]}", numas[0]


def _shares(members: Sequence[CpuRequest], cpus: int) -> list[CpuRequest]:
    """The members of one pool with requests that make up its size, in whole milli-cores; at most what they ask for."""
    cpus = min(cpus, whole_cpus(sum(member.asked for member in members)))
    # Spread evenly and in whole milli-cores, so that the sum is the pool's size to the last one.
    each, more = divmod(1000 * cpus, len(members))
    return [
        replace(request, request_cores=(each + (index < more)) / 1000, asked_cores=request.asked)
        for index, request in enumerate(members)
    ]


def _assign(node: Node, free: CpuSet, requests: Sequence[CpuRequest]) -> Assignment:
    if not requests:
        return Assignment()
    wanting = {request.uid for request in requests}
    shared = (p.cpu_request_millis for p in node.pods if p.qos == "shared_cores" and p.uid not in wanting)
    return assign(Supply(node.topology, free, node.memory_bytes), requests, node.held, sum(shared) / 1000)


def _whole(
    node: Node, placement: Placement, own: Assignment, requests: Sequence[CpuRequest], unread: Mapping[str, str]
) -> Arrangement:
    # Only now: what the tenants' own CPUs leave is the reclaimed pool, of which these pods get a part.
    bound = bind_reclaimed(node.topology, requests, placement.pools[RECLAIM], node.held)
    problems = {**unread, **own.problems, **bound.problems}
    owned = {**own.owned, **bound.owned}
    wide = placement.pools[SHARE] | placement.pools[RECLAIM]
    ramping = [p.uid for p in node.pods if p.qos == "shared_cores" and p.uid in node.ramping and p.uid not in owned]
    numas = {p.uid: owned[p.uid].numas if p.uid in owned else () for p in node.pods if p.uid in node.starting}
    starting = {uid: Owned(RECLAIM, wide, where) for uid, where in numas.items()}
    # Last, because a pod with CPUs of its own does not ramp up on those of others.
    owned |= dict.fromkeys(ramping, Owned(RAMP_UP, wide))
    return Arrangement(placement, owned, dict(sorted(problems.items())), own.otherwise, starting)
