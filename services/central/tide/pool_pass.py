"""One pass over one pool: the plan, and the next step of each node that is to change."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from services.central.core.tide.change import MOST_WHY, LastChange, NodeChange, seconds_since
from services.central.core.tide.edits import NodeEdit, closing, marked
from services.central.core.tide.entry import EntryStep, Move, entry_step, unwelcome
from services.central.core.tide.marks import POOL_LABEL
from services.central.core.tide.plan import PoolPlan, PoolView, TidePace, of_pool, plan_pool
from services.central.core.tide.pool import TidePool, TidePoolSeen
from services.central.core.tide.roles import ONLINE
from services.central.core.tide.seen import TideNodeSeen, TidePodSeen
from services.central.core.tide.status import Status, TidePassResult, worked_status
from services.central.leadership.each_node import EachNode
from services.central.ports.tide import PodOnNode, TidePorts
from services.central.settings import TideSettings
from services.central.tide.said import step_said
from shared.contracts.pod import Pod
from shared.errors import Conflict, Refused
from shared.ports import Clock

log = structlog.get_logger()

AT_ONCE = 2000
"""Nodes and pods over which a plan is made in a few milliseconds."""
EVICTIONS_A_PASS = 20
"""Of one node: a pass takes a bounded time, and the next one begins with a new look."""


@dataclass(frozen=True, slots=True)
class PoolObjects:
    """A pool with its nodes and the pods that concern it."""

    seen: TidePoolSeen
    pool: TidePool
    nodes: Mapping[str, TideNodeSeen]
    pods: Sequence[TidePodSeen]

    @classmethod
    def of(cls, seen: TidePoolSeen, nodes: Iterable[TideNodeSeen], pods: Iterable[TidePodSeen]) -> "PoolObjects":
        """Of all nodes and pods those that concern a pool.

        Raises:
            Refused: the pool cannot be read.
        """
        if seen.pool is None:
            raise Refused(seen.problem, reason="pool")
        mine = {
            node.name: of_pool(node, seen.name)
            for node in nodes
            if seen.pool.selects(node.labels) or _is_marked(node, seen.name)
        }
        return cls(seen, seen.pool, mine, [pod for pod in pods if pod.node is None or pod.node in mine])

    @property
    def view(self) -> PoolView:
        """As the plan sees it."""
        return PoolView(self.seen.marks, self.pool, list(self.nodes.values()), self.pods)

    def status(self, result: TidePassResult, now: datetime) -> Status:
        """Return the pool's status."""
        return worked_status(self.seen, self.nodes.values(), result, now)


async def planned(view: PoolView, now: datetime, pace: TidePace) -> PoolPlan:
    """Return the plan of one pass. Planning for thousands of nodes takes a second, so it runs in a thread next to
    the rest of central.

    The thread reads only the view, which never changes.
    """
    if len(view.nodes) + len(view.pods) <= AT_ONCE:
        return plan_pool(view, now, pace)
    return await asyncio.to_thread(plan_pool, view, now, pace)


def _is_marked(node: TideNodeSeen, pool: str) -> bool:
    return node.labels.get(POOL_LABEL) == pool or (node.change is not None and node.change.pool == pool)


class PoolPass:
    """Moves each node one step further; the Node itself records its progress."""

    def __init__(self, ports: TidePorts, settings: TideSettings, clock: Clock, each: EachNode) -> None:
        self._ports, self._settings, self._clock, self._each = ports, settings, clock, each

    @property
    def failures(self) -> Mapping[str, str]:
        """Nodes on which the newest try failed, and why."""
        return self._each.failures

    def retain(self, nodes: Iterable[str]) -> None:
        """Forget all others."""
        self._each.retain(set(nodes))

    async def clear(self, seen: TidePoolSeen) -> bool:
        """Take the pool's marks from every node that has one; whether none is left.

        Raises:
            SubletError: the API server is away, or another one leads.
        """
        nodes = {node.name: node for node in await self._ports.writer.marked(seen.name)}
        await self._each.each(sorted(nodes), lambda name: self._take_out(seen, nodes[name]))
        return not nodes.keys() & self._each.failures.keys()

    async def work(self, objects: PoolObjects, *, observes: bool) -> TidePassResult:
        """One pass; where it `observes`, the steps are found and none is done.

        Raises:
            SubletError: the API server is away, or another one leads.
        """
        pace = TidePace(self._settings.hold_s, self._settings.pass_s, self._settings.retry_s)
        plan = await planned(objects.view, self._clock.wall(), pace)
        steps: list[tuple[Move, EntryStep]] = []
        moves = {move.node: move for move in plan.moves}
        busy = {node.name for node in objects.nodes.values() if node.change is not None}

        async def one(name: str) -> None:
            step, there = await self._step(moves[name], objects, busy - {name})
            if step.what == "close":
                busy.add(name)
            steps.append((moves[name], step))
            if not observes:
                await self._do(moves[name], step, objects, there)

        if not observes:
            await self._each.each(
                [name for name in plan.leaving if name in objects.nodes],
                lambda name: self._take_out(objects.seen, objects.nodes[name]),
            )
        await self._each.each(list(moves), one)
        mine = {name: why for name, why in self._each.failures.items() if name in objects.nodes}
        return TidePassResult(plan, steps, mine, observes)

    async def _take_out(self, seen: TidePoolSeen, node: TideNodeSeen) -> None:
        if await self._ports.writer.edit(node, lambda now: marked(now, None, seen.marks, None)):
            log.info("tide.node_left", pool=seen.name, node=node.name)

    async def _step(self, move: Move, objects: PoolObjects, busy: set[str]) -> tuple[EntryStep, Sequence[PodOnNode]]:
        """The next step of a node, and the pods on it."""
        node, marks = objects.nodes[move.node], objects.seen.marks
        if not move.changes_side and marks.taints.of(move.role) in node.taints:
            return EntryStep("enter", move.why), ()
        # From the API server itself: in a mirror that is behind, a node might look empty.
        there = await self._ports.writer.pods(move.node)
        leaving = unwelcome([one.seen for one in there], move.role, marks)
        limit_s = self._settings.give_back_limit_s if move.role in ONLINE else self._settings.empty_limit_s
        step = entry_step(move, node, leaving, self._clock.wall(), limit_s)
        returns = move.before is not None and move.role in ONLINE
        if step.what == "close" and busy and leaving and not returns:
            return EntryStep("wait", f"one node after the other is emptied; now it is {min(busy)}"), there
        if step.what == "close" and self._is_held(move, node):
            why = f"given up before: {node.last.why if node.last else ''}"
            return EntryStep("wait", f"{why}; again {self._settings.hold_s:.0f} s later"), there
        return step, there

    def _is_held(self, move: Move, node: TideNodeSeen) -> bool:
        """Of a node that is on no side yet, and was given up; all others the rule of flips has held already."""
        if move.before is not None or node.last is None:
            return False
        age_s = seconds_since(node.last.at, self._clock.wall())
        return age_s is not None and age_s < self._settings.hold_s

    async def _do(self, move: Move, step: EntryStep, objects: PoolObjects, there: Sequence[PodOnNode]) -> None:
        node, marks, now = objects.nodes[move.node], objects.seen.marks, self._clock.wall()
        why = step.why[:MOST_WHY]
        ended = LastChange(pool=objects.seen.name, at=now, why=why, gave_up=step.what == "give_up")
        match step.what:
            case "wait":
                return
            case "close":
                change = NodeChange(pool=objects.seen.name, to=move.role, since=now, why=why, for_pod=move.for_pod)
                await self._write(node, lambda seen: closing(seen, change, marks))
            case "evict":
                await self._evict(move.node, [one.pod for one in there if one.pod and one.seen.key in step.pods])
                return
            case "enter":
                flipped = move.before is not None and move.changes_side
                await self._write(node, lambda seen: marked(seen, move.role, marks, ended if flipped else seen.last))
            case "give_up":
                before = None if move.before == "other" else move.before
                await self._write(node, lambda seen: marked(seen, before, marks, ended))
        self._ports.decisions.say(step_said(objects.seen, move, step))
        log.info("tide.node_step", pool=objects.seen.name, node=move.node, step=step.what, to=move.role, why=why)

    async def _write(self, node: TideNodeSeen, edit: Callable[[TideNodeSeen], NodeEdit]) -> None:
        # Somebody else wrote the Node in the meantime, as its kubelet does: the next pass looks again.
        with contextlib.suppress(Conflict):
            await self._ports.writer.edit(node, edit)

    async def _evict(self, node: str, pods: Sequence[Pod]) -> None:
        """Ask the API server to evict them; what a budget holds is asked for again in the next pass."""
        for pod in pods[:EVICTIONS_A_PASS]:
            await self._ports.evictions.evict(node, pod, _no_objection)


def _no_objection(pod: Pod) -> str:
    """The pods were read a moment ago, and the call itself looks for the UID."""
    del pod
    return ""
