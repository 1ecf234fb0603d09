"""Lost nodes: all that is done about them, in one place, by the leader alone.

Verdicts, guards and pace are pure (`core.verdict`, `core.guards`, `core.turn`). What is left of the budgets is kept in
the leader's lease before anything is done: a restart gives nothing for free, and whoever has lost the lease cannot keep
them and so does nothing.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.turn import Case, Deed, pods_now, turn
from services.central.core.lost_nodes.verdict import withdrawn
from services.central.core.objects.look import Look
from services.central.leadership.each_node import EachNode
from services.central.leadership.leader import Leader, NotLeading
from services.central.lost_nodes.cnr_conditions import CnrConditions
from services.central.lost_nodes.marks import NodeMarks
from services.central.lost_nodes.pods import LostPods
from shared.contracts.pod import Pod
from shared.core.evictions.intents import Bucket
from shared.errors import SubletError
from shared.ports import Clock

log = structlog.get_logger()

NODE_TOKENS, POD_TOKENS = "sublet.io/lost-node-tokens", "sublet.io/lost-pod-tokens"
"""Annotations of the lease."""
ACT_S = 1.0
MAX_LOOK_AGE_S = 5.0
"""Nothing is done on a look that is older."""
LISTED_NODES = 100


class LostNodes:
    """The latest look, and what follows from it."""

    def __init__(
        self, marks: NodeMarks, conditions: CnrConditions, clock: Clock, leader: Leader, pods: LostPods
    ) -> None:
        self._marks, self._conditions, self._pods = marks, conditions, pods
        self._clock, self._leader = clock, leader
        self._rules, self._looked_at_s = Rules(), float("-inf")
        self._withdrawing, self._doing = EachNode(clock, "withdraw"), EachNode(clock, "taint or evict")
        self._seen = Look()
        self._node_bucket = self._pod_bucket = Bucket(0, 0)
        self._deeds: list[Deed] = []
        self._failure = ""

    def look(self, seen: Look, rules: Rules) -> None:
        """The newest verdicts with what they are about."""
        self._seen, self._rules, self._looked_at_s = seen, rules, self._clock.monotonic()

    def recall(self) -> None:
        """Take over what a former leader had left of the budgets; time in which nobody looked refills nothing."""
        now_s, kept = self._clock.monotonic(), self._leader.annotations
        self._node_bucket = Bucket(_tokens(kept.get(NODE_TOKENS)), now_s)
        self._pod_bucket = Bucket(_tokens(kept.get(POD_TOKENS)), now_s)
        self._conditions.forget()

    async def act_forever(self) -> None:
        """Work until cancelled; trouble ends a turn, and the next one begins with a new look."""
        while True:
            await self._clock.sleep(ACT_S)
            try:
                await self._act()
            except SubletError as error:
                if str(error) != self._failure:
                    log.warning("lost_nodes.not_done", why=str(error))
                self._failure = str(error)
            else:
                self._failure = ""

    async def _act(self) -> None:
        await self._pods.follow()
        if not self._fresh():
            return
        seen = self._seen
        for work in (self._withdrawing, self._doing):
            work.keep(seen.judged)
        await self._withdrawing.each(sorted(seen.judged), partial(self._withdraw, seen))
        await self._conditions.tell(seen)
        await self._pods.list_of([name for name in seen.judged if self._may_lose_pods(seen, name)])
        cases = [self._case(seen, name) for name in seen.judged if name in seen.cnrs]
        now_s, guards = self._clock.monotonic(), seen.assessment.guards
        self._deeds, bucket = turn(cases, guards, self._node_bucket, now_s, self._rules)
        done = [deed for deed in self._deeds if not deed.objection]
        if bucket != self._node_bucket:
            await self._keep(bucket, self._pod_bucket)
        deeds = {deed.node: deed for deed in done}
        await self._doing.each(list(deeds), lambda name: self._do(deeds[name]))

    def _fresh(self) -> bool:
        return self._clock.monotonic() - self._looked_at_s <= MAX_LOOK_AGE_S

    def _case(self, seen: Look, name: str) -> Case:
        has_pods = bool(self._pods.staying(name))
        failing = name in self._doing.failures
        return Case(name, seen.judged[name], _tainted(seen, name), has_pods, seen.nodes[name].place, failing)

    def _may_lose_pods(self, seen: Look, name: str) -> bool:
        judged = seen.judged[name]
        lost = judged.verdict == "lost" and judged.lost_s > self._rules.evict_s
        return lost and name in seen.cnrs and _tainted(seen, name)

    async def _withdraw(self, seen: Look, name: str) -> None:
        """Take from sale what a silent node offers; a node that is heard again offers it anew by itself.

        The condition that says so comes first: the reporter of a node that is only cut off from the bus reads it, and
        offers nothing meanwhile.
        """
        node, judged = seen.nodes[name], seen.judged[name]
        if withdrawn(judged) and node.sold:
            try:
                await self._conditions.tell_of(seen, name)
            except NotLeading:
                raise
            except SubletError as error:  # a CNR that cannot be written keeps nothing on sale
                log.warning("cnr.not_told", node=name, why=str(error))
            await self._marks.withdraw(node, judged)

    async def _keep(self, nodes: Bucket, pods: Bucket) -> None:
        """Save before acting.

        Raises:
            SubletError: it could not be kept, or another one leads; then nothing is done.
        """
        await self._leader.annotate({NODE_TOKENS: f"{nodes.tokens:.6f}", POD_TOKENS: f"{pods.tokens:.6f}"})
        self._node_bucket, self._pod_bucket = nodes, pods

    async def _do(self, deed: Deed) -> None:
        """One deed, if it is still due: the look may have changed while the one before was done."""
        judged = self._seen.judged.get(deed.node)
        if judged is None or not self._fresh() or deed.node not in self._seen.cnrs:
            return
        if deed.action == "evict":
            await self._evict(deed.node)
        elif (deed.action == "taint") == (judged.verdict in ("suspect", "lost")):
            await self._marks.taint(self._seen.cnrs[deed.node], judged, lost=deed.action == "taint")

    async def _evict(self, name: str) -> None:
        """Some of a lost node's reclaimed pods, each after another look."""
        pods = {pod.key: pod for pod in self._pods.staying(name)}
        going, bucket = pods_now(
            list(pods), self._pods.under_way(name), self._pod_bucket, self._clock.monotonic(), self._rules
        )
        if not going:
            return
        await self._keep(self._node_bucket, bucket)
        for key in going:
            await self._pods.evict(name, pods[key], self._still(name))

    def _still(self, name: str) -> Callable[[Pod], str]:
        """Why a pod of the node is not evicted after all, asked right before; empty: it is."""

        def objection(pod: Pod) -> str:
            judged = self._seen.judged.get(name)
            if not self._leader.leading:
                return "another one leads"
            if judged is None or judged.verdict != "lost" or not self._fresh():
                return "the node is not certainly lost any more"
            if self._pods.agent_lives(name):
                return "its agent is ready after all"
            if pod.qos != "reclaimed_cores":
                return f"pod {pod.key} is {pod.qos}"
            return self._seen.assessment.guards.objection(self._seen.nodes[name].place)

        return objection

    @property
    def not_done(self) -> dict[str, str]:
        """Nodes of which something could not be done, and why."""
        works = (self._conditions.telling, self._withdrawing, self._doing, self._pods.listing)
        return {node: why for work in works for node, why in work.failures.items()}

    def state(self) -> dict[str, Any]:
        """Every node that is not simply ready, the guards, what waits and why, and the budgets."""
        others = {name: j for name, j in self._seen.judged.items() if j.verdict != "ready"}
        return {
            "nodes": {n: {"verdict": j.verdict, "why": j.why, "lost_s": j.lost_s}
                      for n, j in list(others.items())[:LISTED_NODES]},
            "unlisted": max(0, len(others) - LISTED_NODES),
            "guards": {scope: list(why) for scope, why in self._seen.assessment.guards.objections.items()},
            "wanted": {deed.node: {"action": deed.action, "objection": deed.objection} for deed in self._deeds},
            "tokens": {"nodes": self._node_bucket.tokens, "pods": self._pod_bucket.tokens},
            "evictions": self._pods.state(),
            "failure": self._failure,
        }  # fmt: skip


def _tainted(seen: Look, name: str) -> bool:
    return any(taint.ours for taint in seen.cnrs[name].taints)


def _tokens(text: str | None) -> float:
    try:
        return max(0.0, min(1.0, float(text or 0)))
    except ValueError:
        return 0.0
