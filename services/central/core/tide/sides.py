"""Which node of a pool changes sides, if any: the pods that wait, and what they would fit on
(docs/facts/katalyst-tide.md#one-pass).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from services.central.core.tide.roles import ONLINE, Standing

TideRole = Literal["tide_online", "tide_offline"]
LEAST_ONLINE = 2
"""Tide nodes on the services' side: the last one stays."""
Amounts = Mapping[str, int]
"""By resource: CPU in milli-cores, memory in bytes, the bare number of all others."""


@dataclass(frozen=True, slots=True)
class TideNode:
    """A node of a pool; what is not in `allocatable` it does not have."""

    name: str
    role: Standing
    allocatable: Amounts
    unschedulable: bool = False
    flipped_s_ago: float | None = None
    """Since it changed sides; None: it never did."""


@dataclass(frozen=True, slots=True)
class TidePod:
    """A pod that is on a node of the pool, or on none."""

    name: str
    node: str | None
    requests: Amounts
    online: bool = False
    unschedulable: bool = False
    """The scheduler has found no node for it."""
    stays: bool = False
    """It belongs to its node, as a DaemonSet's pod."""
    excluded: frozenset[str] = frozenset()
    """Nodes on which it would not run, whatever room they have."""

    @property
    def waits(self) -> bool:
        """Whether it is of a service, and found no node."""
        return self.online and self.node is None and self.unschedulable


@dataclass(frozen=True, slots=True)
class Flip:
    """A tide node changes sides."""

    node: str
    to: TideRole
    for_pod: str | None = None


@dataclass(frozen=True, slots=True)
class SidesVerdict:
    """The result of one pass."""

    flip: Flip | None
    stuck: tuple[str, ...]
    """Waiting pods that fit nowhere on their side, up to the one for which a node flips."""


def next_flip(nodes: Sequence[TideNode], pods: Sequence[TidePod], min_hold_s: float = 0.0) -> SidesVerdict:
    """At most one flip: a node for the first waiting pod that one helps; while none waits, the least used one goes.

    A node that flipped less than `min_hold_s` ago stays.
    """
    pool = _Pool(nodes, pods)
    waiting = sorted((pod for pod in pods if pod.waits), key=lambda pod: pod.name)
    free = [node for node in pool.by_use if not _held(node, min_hold_s)]
    stuck: list[str] = []
    for pod in waiting:
        if any(pool.has_room(node, pod) for node in pool.online):
            continue
        stuck.append(pod.name)
        for node in free:
            if node.role == "tide_offline" and pool.has_room(node, pod, emptied=True):
                return SidesVerdict(Flip(node.name, "tide_online", pod.name), tuple(stuck))
    if waiting:
        # Also where each would fit by these figures: the scheduler knows more, and has found no node.
        return SidesVerdict(None, tuple(stuck))
    least_used = next((node for node in free if node.role == "tide_online"), None)
    if least_used is None or pool.count("tide_online") < LEAST_ONLINE or not pool.can_spare(least_used):
        return SidesVerdict(None, ())
    return SidesVerdict(Flip(least_used.name, "tide_offline"), ())


def flip_for_clock(
    nodes: Sequence[TideNode], pods: Sequence[TidePod], least_online: int, min_hold_s: float
) -> Flip | None:
    """The least used node of the batch side, while fewer tide nodes than this are on the services' side."""
    if sum(node.role == "tide_online" for node in nodes) >= least_online:
        return None
    pool = _Pool(nodes, pods)
    away = (node for node in pool.by_use if node.role == "tide_offline" and not node.unschedulable)
    found = next((node for node in away if not _held(node, min_hold_s)), None)
    return None if found is None else Flip(found.name, "tide_online")


def promised(nodes: Iterable[TideNode], pods: Sequence[TidePod]) -> list[TidePod]:
    """Return the pods, each waiting one placed on the first of these nodes that has room for it.

    They are on their way to the services' side: if one of those nodes is enough for them, no further node changes.
    """
    coming, waiting = list(nodes), sorted((pod for pod in pods if pod.waits), key=lambda pod: pod.name)
    if not (coming and waiting):
        return list(pods)
    pool, after = _Pool(coming, pods), [pod for pod in pods if not pod.waits]
    for pod in waiting:
        target = next((node for node in pool.online if pool.has_room(node, pod)), None)
        after.append(pod if target is None else replace(pod, node=target.name))
        if target is not None:
            pool.add(target, pod)
    return after


def _held(node: TideNode, min_hold_s: float) -> bool:
    return node.flipped_s_ago is not None and node.flipped_s_ago < min_hold_s


def share_of(requested: Amounts, allocatable: Amounts) -> float:
    """The larger part of a node's CPU or memory that is requested."""
    return max(_part(requested.get(name, 0), allocatable.get(name, 0)) for name in ("cpu", "memory"))


def _part(requested: int, allocatable: int) -> float:
    if requested <= 0:
        return 0.0
    return requested / allocatable if allocatable > 0 else float("inf")


class _Pool:
    """The nodes of a pool with what is requested on each."""

    def __init__(self, nodes: Sequence[TideNode], pods: Iterable[TidePod]) -> None:
        self._nodes = sorted(nodes, key=lambda node: node.name)
        self._pods: dict[str | None, list[TidePod]] = defaultdict(list)
        for pod in pods:
            self._pods[pod.node].append(pod)
        self._requested = {node.name: _sum(self._pods[node.name]) for node in nodes}
        self.by_use = sorted(self._nodes, key=self._use)
        """Least used first, then by name."""
        self.online = [node for node in self._nodes if node.role in ONLINE]
        """By name."""

    def _use(self, node: TideNode) -> tuple[float, str]:
        return share_of(self._requested[node.name], node.allocatable), node.name

    def add(self, node: TideNode, pod: TidePod) -> None:
        self._requested[node.name].update(pod.requests)

    def count(self, role: TideRole) -> int:
        return sum(node.role == role for node in self._nodes)

    def has_room(self, node: TideNode, pod: TidePod, *, emptied: bool = False) -> bool:
        """Return whether a pod fits next to all pods there, or next to those that would stay."""
        there = _sum(one for one in self._pods[node.name] if one.stays) if emptied else self._requested[node.name]
        return _fits(pod, node, there)

    def can_spare(self, leaving: TideNode) -> bool:
        """Return whether the services' pods of a node fit on the others, one after the other, the largest first."""
        others = [node for node in self.online if node.name != leaving.name]
        requested = {node.name: Counter(self._requested[node.name]) for node in others}
        moving = [pod for pod in self._pods[leaving.name] if pod.online and not pod.stays]
        for pod in sorted(moving, key=lambda pod: (-share_of(pod.requests, leaving.allocatable), pod.name)):
            target = next((node for node in others if _fits(pod, node, requested[node.name])), None)
            if target is None:
                return False
            requested[target.name].update(pod.requests)
        return True


def _sum(pods: Iterable[TidePod]) -> Counter[str]:
    total: dict[str, int] = {}
    # By hand: a pass adds up the pods of thousands of nodes, and `Counter.update` takes three times as long.
    for pod in pods:
        for name, amount in pod.requests.items():
            total[name] = total.get(name, 0) + amount
    return Counter(total)


def _fits(pod: TidePod, node: TideNode, requested: Amounts) -> bool:
    if node.unschedulable or node.name in pod.excluded:
        return False
    return all(
        amount <= node.allocatable.get(name, 0) - requested.get(name, 0)
        for name, amount in pod.requests.items()
        if amount > 0
    )
