"""The controller of lost nodes: everything that is done about them, in one place, by the leader.

Each second it observes the newest view of the cluster, decides what is due, validates every action right before it is
done, and acts. Verdicts, guards and pace are pure (`core.lost_nodes`). The remaining budgets are saved in the leader's
lease before any action. A restart therefore refills nothing, and a central that has lost the lease cannot save them and
does nothing.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from services.central.core.heartbeats.readiness import Assessment, Ledger
from services.central.core.lost_nodes.actions import OBSERVES, NodeCase, PlannedAction, plan_actions, plan_evictions
from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.verdict import Judged, withdrawn
from services.central.core.objects.nodes import NodeSeen
from services.central.core.view.cluster_view import ClusterView
from services.central.leadership.each_node import EachNode
from services.central.leadership.leader import Leader, NotLeading
from services.central.nodes.observer import NodeObserver
from services.central.ports.nodes import NodePorts
from shared.contracts.pod import Pod
from shared.core.evictions.intents import TokenBucket
from shared.errors import SubletError
from shared.ports import Clock

log = structlog.get_logger()

NODE_TOKENS, POD_TOKENS = "sublet.io/lost-node-tokens", "sublet.io/lost-pod-tokens"
"""Annotations of the lease."""
ACT_S = 1.0
MAX_VIEW_AGE_S = 5.0
"""Nothing is done on a view that is older."""
LISTED_NODES = 100


class NodeController:
    """Acts on the newest view of the cluster."""

    def __init__(self, observer: NodeObserver, ports: NodePorts, leader: Leader, clock: Clock) -> None:
        self._observer, self._ports, self._leader, self._clock = observer, ports, leader, clock
        self._rules, self._observed_at_s = Rules(), float("-inf")
        self._withdrawing, self._acting = EachNode(clock, "withdraw"), EachNode(clock, "taint or evict")
        self._view = ClusterView()
        self._node_bucket = self._pod_bucket = TokenBucket(0, 0)
        self._planned: list[PlannedAction] = []
        self._failure = ""

    def nodes(self) -> Mapping[str, NodeSeen] | None:
        """The Nodes with an agent, or that ever had one, by name; None while that is not known."""
        return self._observer.nodes()

    def sent_ago_s(self, node: str, sent_at: datetime) -> float | None:
        """How long ago, at least, a node sent something, by its own clock; None: unknown."""
        return self._observer.sent_ago_s(node, sent_at)

    def observe(self, ledger: Ledger, assessment: Assessment, rules: Rules, *, bus_well: bool) -> None:
        """Record what the bus says about the nodes; every central observes, only the leader acts on it."""
        self._view = self._observer.observe(ledger, assessment, rules, bus_well=bus_well)
        self._rules, self._observed_at_s = rules, self._clock.monotonic()

    def begin(self) -> None:
        """Begin to lead, with the budgets that the former leader had left.

        Time in which no central observed refills nothing.
        """
        now_s, saved = self._clock.monotonic(), self._leader.annotations
        # From now on: a lease that was vacant for an hour has filled no bucket.
        self._node_bucket = TokenBucket(_tokens(saved.get(NODE_TOKENS)), now_s)
        self._pod_bucket = TokenBucket(_tokens(saved.get(POD_TOKENS)), now_s)
        self._ports.conditions.forget()

    async def run(self) -> None:
        """Work until cancelled; trouble ends a pass, and the next one begins with a new view."""
        while True:
            await self._clock.sleep(ACT_S)
            try:
                await self._reconcile()
            except SubletError as error:
                if str(error) != self._failure:
                    log.warning("lost_nodes.not_done", why=str(error))
                self._failure = str(error)
            else:
                self._failure = ""

    async def _reconcile(self) -> None:
        """One pass: observe, decide, then validate and act node by node."""
        # Before the view is checked: what was evicted is published even if nothing more may be done.
        await self._ports.evictions.report_gone()
        if not self._is_current():
            return
        # One view for the whole pass; `_validate` looks at the newest one right before each action.
        view = self._view
        on_sale = [name for name in view.others if view.nodes[name].offered and withdrawn(view.judged[name])]
        self._withdrawing.retain(on_sale)
        self._acting.retain(view.judged)
        # First what harms no one: no new reclaimed pods for silent nodes, whatever the guards say about the rest.
        await self._withdrawing.each(on_sale, partial(self._withdraw, view))
        await self._ports.conditions.write_changed(view)
        # Read from the API server in each pass, only for the few nodes that may lose some, because a mirror may be
        # behind.
        await self._ports.pods.read([name for name in view.others if view.may_lose_pods(name, self._rules)])
        self._planned, bucket = self._decide(view)
        # Saved before anything is done: a crash in between spends a token for nothing, and never the other way round.
        if bucket != self._node_bucket:
            await self._save(bucket, self._pod_bucket)
        allowed = {planned.node: planned for planned in self._planned if not planned.objection}
        await self._acting.each(list(allowed), lambda name: self._act(allowed[name]))

    def _is_current(self) -> bool:
        return self._clock.monotonic() - self._observed_at_s <= MAX_VIEW_AGE_S

    def _decide(self, view: ClusterView) -> tuple[list[PlannedAction], TokenBucket]:
        """Return what is due, under all guards, and the bucket of nodes afterwards."""
        cases = [self._case(view, name) for name in view.concerned]
        return plan_actions(cases, view.assessment.guards, self._node_bucket, self._clock.monotonic(), self._rules)

    def _case(self, view: ClusterView, name: str) -> NodeCase:
        has_pods = bool(self._ports.pods.staying(name))
        failing = name in self._acting.failures
        place, observes = view.nodes[name].place, name in view.observing
        paused = self._ports.paused(name)
        return NodeCase(name, view.judged[name], view.tainted(name), has_pods, place, failing, observes, paused)

    async def _withdraw(self, view: ClusterView, name: str) -> None:
        """Withdraw the offer of a silent node; a node that is heard again writes its offer again by itself.

        The condition that announces it is written first: the reporter of a node that is only cut off from the bus reads
        it, and offers nothing meanwhile. No guard applies, because this affects no running pod.
        """
        try:
            await self._ports.conditions.write_one(view, name)
        except NotLeading:
            raise
        except SubletError as error:  # a CNR that cannot be written keeps nothing on sale
            log.warning("cnr.not_told", node=name, why=str(error))
        await self._ports.marks.withdraw(view.nodes[name], view.judged[name])

    async def _save(self, nodes: TokenBucket, pods: TokenBucket) -> None:
        """Save the budgets before acting.

        Raises:
            SubletError: they could not be saved, or another one leads; then nothing is done.
        """
        await self._leader.annotate({NODE_TOKENS: f"{nodes.tokens:.6f}", POD_TOKENS: f"{pods.tokens:.6f}"})
        self._node_bucket, self._pod_bucket = nodes, pods

    def _validate(self, planned: PlannedAction) -> Judged | None:
        """The verdict that the action rests on, by the newest view; None: it is not due any more.

        Each action takes a moment, and the view may have changed while the one before was done.
        """
        judged = self._view.judged.get(planned.node)
        if judged is None or not self._is_current() or planned.node not in self._view.cnrs:
            return None
        if planned.action != "evict" and (planned.action == "taint") != (judged.verdict in ("suspect", "lost")):
            return None
        return judged

    async def _act(self, planned: PlannedAction) -> None:
        judged = self._validate(planned)
        if judged is None:
            return
        if planned.action == "evict":
            await self._evict(planned.node)
        else:
            await self._ports.marks.taint(self._view.cnrs[planned.node], judged, lost=planned.action == "taint")

    async def _evict(self, name: str) -> None:
        """Some of a lost node's reclaimed pods, each validated again."""
        pods = {pod.key: pod for pod in self._ports.pods.staying(name)}
        going, bucket = plan_evictions(
            list(pods), self._ports.pods.under_way(name), self._pod_bucket, self._clock.monotonic(), self._rules
        )
        if not going:
            return
        await self._save(self._node_bucket, bucket)
        for key in going:
            await self._ports.evictions.evict(name, pods[key], self._validator(name))

    def _validator(self, name: str) -> Callable[[Pod], str]:
        """Why a pod of the node is not evicted after all, asked right before; empty: it is."""

        def objection(pod: Pod) -> str:
            judged = self._view.judged.get(name)
            if not self._leader.leading:
                return "another one leads"
            if judged is None or judged.verdict != "lost" or not self._is_current():
                return "the node is not certainly lost any more"
            # The view is a moment old, and a node may have spoken since.
            if self._observer.silent_s(name) <= self._rules.late_s:
                return "the node is heard again"
            if self._ports.pods.agent_lives(name):
                return "its agent is ready after all"
            if name in self._view.observing:
                return OBSERVES
            if why := self._ports.paused(name):
                return why
            if pod.qos != "reclaimed_cores":
                return f"pod {pod.key} is {pod.qos}"
            return self._view.assessment.guards.objection(self._view.nodes[name].place)

        return objection

    @property
    def not_done(self) -> dict[str, str]:
        """Nodes with a failed action, and why."""
        works = (self._ports.conditions, self._withdrawing, self._acting, self._ports.pods)
        return {node: why for work in works for node, why in work.failures.items()}

    def state(self) -> dict[str, Any]:
        """Every node that is not simply ready, the guards, what waits and why, and the budgets."""
        others = {name: self._view.judged[name] for name in self._view.others}
        return {
            "nodes": {n: {"verdict": j.verdict, "why": j.why, "lost_s": j.lost_s}
                      for n, j in list(others.items())[:LISTED_NODES]},
            "unlisted": max(0, len(others) - LISTED_NODES),
            "guards": {scope: list(why) for scope, why in self._view.assessment.guards.objections.items()},
            "wanted": {one.node: {"action": one.action, "objection": one.objection} for one in self._planned},
            "tokens": {"nodes": self._node_bucket.tokens, "pods": self._pod_bucket.tokens},
            "evictions": self._ports.evictions.state(),
            "failure": self._failure,
        }  # fmt: skip


def _tokens(text: str | None) -> float:
    try:
        # At most one, and none if unknown, so that editing the annotation cannot speed central up.
        return max(0.0, min(1.0, float(text or 0)))
    except ValueError:
        return 0.0
