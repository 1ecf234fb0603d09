"""Plans the roles of a pool's nodes: reserves first, then at most one tide node that changes sides.

A node on its way counts with its new side: towards services it already serves pods that tolerate its taint; towards
batch work it accepts no pod.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from services.central.core.tide.change import seconds_since
from services.central.core.tide.edits import PoolMarks, marked
from services.central.core.tide.entry import Move, unwelcome
from services.central.core.tide.marks import standing_of
from services.central.core.tide.placement import KEEPS_AWAY, TidePlacement
from services.central.core.tide.pool import TidePool
from services.central.core.tide.roles import ONLINE, Reserves, Role, Standing, role_changes
from services.central.core.tide.seen import TideNodeSeen, TidePodSeen
from services.central.core.tide.sides import Flip, TideNode, TidePod, flip_for_clock, next_flip, promised


@dataclass(frozen=True, slots=True)
class TidePace:
    """How fast nodes change sides."""

    hold_s: float
    """Least time that a node stays on its side after a change."""
    release_s: float
    """Between two nodes that go to the batch side."""
    retry_s: float
    """Until a node that was given up is tried again: its pods were evicted for nothing."""


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool with its nodes, and all pods that are on them or on none."""

    marks: PoolMarks
    pool: TidePool
    nodes: Sequence[TideNodeSeen]
    """Those that it selects, and those that carry its mark."""
    pods: Sequence[TidePodSeen]


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """What to do, in order, and the content of the status."""

    roles: Mapping[str, Role]
    """The role of each node, current or coming."""
    reserves: Reserves
    moves: Sequence[Move] = ()
    leaving: Sequence[str] = ()
    """Nodes that the pool selects no more."""
    waiting: Sequence[str] = ()
    """Pods of services that this pool could take and that have no node."""
    stuck: Sequence[str] = ()
    """Those of them that no node of the pool helps."""
    foreign: Sequence[str] = ()
    """Selected nodes with another pool's mark."""


def plan_pool(view: PoolView, now: datetime, pace: TidePace) -> PoolPlan:
    """Return the plan of one pass, from the objects alone."""
    selected = {node.name: node for node in view.nodes if view.pool.selects(node.labels)}
    leaving = sorted(node.name for node in view.nodes if node.name not in selected)
    standings = {name: _standing(node, view.marks) for name, node in selected.items()}
    reserves = Reserves.of(view.pool.online, view.pool.offline, len(selected))
    changes = [change for change in role_changes(standings, reserves) if _change_of(selected[change.node]) is None]
    why = dict.fromkeys((change.node for change in changes), "the pool's reserves")
    after = {**standings, **{change.node: change.role for change in changes}}
    flip, waiting, stuck, because = _flip(view, selected, after, now, pace)
    if flip is not None:
        after[flip.node] = flip.to
        why[flip.node] = because
    roles = {name: role for name, role in after.items() if role is not None and role != "other"}
    moves = [
        _hindered(_move(node, roles[name], view.marks, why.get(name, ""), flip), waiting)
        for name, node in sorted(selected.items())
        if name in roles and not _settled(node, roles[name], view.marks)
    ]
    return PoolPlan(
        roles=roles,
        reserves=reserves,
        moves=sorted(moves, key=lambda move: (move.role not in ONLINE, selected[move.node].change is None, move.node)),
        leaving=leaving,
        waiting=waiting,
        stuck=stuck,
        foreign=sorted(name for name, standing in standings.items() if standing == "other"),
    )


def of_pool(node: TideNodeSeen, pool: str) -> TideNodeSeen:
    """Return the node without a change that a deleted pool has begun."""
    return node if node.change is None or node.change.pool == pool else replace(node, change=None)


def _settled(node: TideNodeSeen, role: Role, own: PoolMarks) -> bool:
    return not marked(node, role, own, node.last).changes(node)


def _change_of(node: TideNodeSeen) -> Role | None:
    """Where a node is on its way to."""
    return None if node.change is None else node.change.to


def _standing(node: TideNodeSeen, own: PoolMarks) -> Standing:
    return _change_of(node) or standing_of(node.labels, own.pool)


def _move(node: TideNodeSeen, role: Role, own: PoolMarks, why: str, flip: Flip | None) -> Move:
    before = standing_of(node.labels, own.pool)
    if node.change is not None and not why:
        return Move(node.name, role, before, node.change.why, node.change.for_pod)
    for_pod = flip.for_pod if flip is not None and flip.node == node.name else None
    return Move(node.name, role, before, why or "its marks were changed by somebody else", for_pod)


def _hindered(move: Move, waiting: Sequence[str]) -> Move:
    if move.role in ONLINE or not move.changes_side or not waiting:
        return move
    return replace(move, hindrance=f"pod {waiting[0]} waits: nothing goes to the batch side meanwhile")


def _flip(
    view: PoolView, selected: Mapping[str, TideNodeSeen], roles: Mapping[str, Standing], now: datetime, pace: TidePace
) -> tuple[Flip | None, list[str], list[str], str]:
    """The node that changes sides, the pods that wait, those that nothing helps, and why."""
    pinned = {pod.node for pod in view.pods if pod.critical and not pod.stays}
    nodes = [
        _tide_node(
            selected[name],
            role,
            now,
            held=name in pinned
            or _was_given_up(selected[name], now, pace)
            or not _at_home(selected[name], role, view.marks),
        )
        for name, role in roles.items()
        if role is not None
    ]
    pods = _pods(view, selected)
    waiting = sorted(pod.name for pod in pods if pod.waits)
    coming = [node for node in nodes if node.role == "tide_online" and selected[node.name].change is not None]
    pods = promised(coming, pods)
    found = next_flip(nodes, pods, pace.hold_s)
    if found.flip is not None and found.flip.to == "tide_online":
        return found.flip, waiting, list(found.stuck), f"pod {found.flip.for_pod} waits and fits nowhere else"
    tide_nodes = sum(node.role in ("tide_online", "tide_offline") for node in nodes)
    least = view.pool.least_online(tide_nodes, now.timestamp())
    by_clock = flip_for_clock(nodes, pods, least, pace.hold_s)
    if by_clock is not None:
        return by_clock, waiting, list(found.stuck), f"by the hour {least} tide nodes are for services"
    online = sum(node.role == "tide_online" for node in nodes)
    # Pods that are promised a node still wait: that node is changing, so nothing is at rest.
    if found.flip is None or online <= least or not _at_rest(selected.values(), now, pace):
        return None, waiting, list(found.stuck), ""
    return found.flip, waiting, [], "the services' pods of this node fit on the others"


def _at_rest(nodes: Iterable[TideNodeSeen], now: datetime, pace: TidePace) -> bool:
    """Return whether no node is changing, and the last change is old enough for its pods to be visible."""
    ages_s = [_age_s(node, now) for node in nodes]
    return all(node.change is None for node in nodes) and all(
        age_s is None or age_s >= pace.release_s for age_s in ages_s
    )


def _at_home(node: TideNodeSeen, role: Standing, own: PoolMarks) -> bool:
    """Whether the node is where it should be: what is new, or on its way, does not change again."""
    return role is None or role == "other" or _settled(node, role, own)


def _was_given_up(node: TideNodeSeen, now: datetime, pace: TidePace) -> bool:
    """Whether its last change came to nothing, not long ago."""
    age_s = _age_s(node, now)
    return node.last is not None and node.last.gave_up and age_s is not None and age_s < pace.retry_s


def _tide_node(node: TideNodeSeen, role: Standing, now: datetime, *, held: bool) -> TideNode:
    """`held`: it does not change sides now, as one that has just done so."""
    leaves = node.change is not None and role not in ONLINE
    age_s = 0.0 if held else _age_s(node, now)
    return TideNode(node.name, role, node.allocatable, node.unschedulable or leaves, age_s)


def _age_s(node: TideNodeSeen, now: datetime) -> float | None:
    """Seconds since its last change."""
    return None if node.last is None else seconds_since(node.last.at, now)


def _pods(view: PoolView, selected: Mapping[str, TideNodeSeen]) -> list[TidePod]:
    """Pods as the rule has them. One that could run on no node of the pool does not wait for this pool."""
    excluded = _Excluded(selected.values(), view.marks)
    going = {
        name: {pod.key for pod in unwelcome([one for one in view.pods if one.node == name], node.change.to, view.marks)}
        for name, node in selected.items()
        if node.change is not None and node.change.to in ONLINE
    }
    found = []
    for pod in view.pods:
        if pod.node is None and (pod.terminating or not pod.online):
            continue
        if pod.node is not None and (pod.node not in selected or pod.key in going.get(pod.node, ())):
            continue
        kept_out = excluded.of(pod.placement) if pod.online else frozenset[str]()
        if pod.node is None and len(kept_out) == len(selected):
            continue
        asked = TidePod(pod.key, pod.node, pod.requests, pod.online, pod.unschedulable, pod.stays, kept_out)
        found.append(asked)
    return found


class _Excluded:
    """Nodes on which a pod would not run, remembered: thousands of pods have the same few placements."""

    def __init__(self, nodes: Iterable[TideNodeSeen], own: PoolMarks) -> None:
        self._nodes = list(nodes)
        self._own = own
        self._known: dict[TidePlacement, frozenset[str]] = {}

    def of(self, placement: TidePlacement) -> frozenset[str]:
        if placement not in self._known:
            if not placement.tolerates(self._own.taints.online):
                self._known[placement] = frozenset(node.name for node in self._nodes)
            else:
                kept = (node.name for node in self._nodes if self._keeps_out(node, placement))
                self._known[placement] = frozenset(kept)
        return self._known[placement]

    def _keeps_out(self, node: TideNodeSeen, placement: TidePlacement) -> bool:
        """By its labels, or a taint that is not the pool's: these change with the side."""
        others = (
            taint for taint in node.taints if taint.key not in self._own.taints.keys and taint.effect in KEEPS_AWAY
        )
        return not placement.wants(node.name, node.labels) or any(not placement.tolerates(one) for one in others)
