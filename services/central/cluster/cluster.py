"""Central in a cluster: mirrors of what it needs, who leads, and what bus and API server say together.

Everybody looks; the leader alone writes, and stops with its lease.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Any, TypeVar

from services.central.cluster.passes import Passes
from services.central.config.node_entries import NodeEntries
from services.central.core.heartbeats.readiness import Assessment, Ledger
from services.central.core.lost_nodes.rules import Rules
from services.central.core.objects.look import Look
from services.central.core.objects.seen import NODE_LEASES, NodeSeen, agent_of, lease_of
from services.central.leadership.leader import Leader
from services.central.leadership.objects import LeaderObjects
from services.central.lost_nodes.cnr_conditions import CnrConditions
from services.central.lost_nodes.evidence import LostEvidence
from services.central.lost_nodes.lost_nodes import LostNodes
from services.central.lost_nodes.marks import NodeMarks
from services.central.lost_nodes.pods import LostPods
from services.central.settings import KubernetesSettings
from shared.core.api_kind import LEASES, PODS
from shared.errors import Unavailable
from shared.ports import Bus, Clock, EvictionActuator, ObjectMirror, Objects

T = TypeVar("T")
LISTED = 100
"""Nodes that are named in the answer to `ask`: it must fit one message."""
WATCH_SILENCE_S = 90.0
"""A watch of which nothing was heard for longer is not current, whatever it says of itself."""


class Cluster:
    """What central does with the API server."""

    def __init__(
        self,
        objects: Objects,
        bus: Bus,
        clock: Clock,
        identity: str,
        settings: KubernetesSettings,
        evictor: EvictionActuator,
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self._close = close
        self._clock = clock
        self.leader = Leader(objects, clock, identity, settings.lease)
        ours = LeaderObjects(objects, self.leader)
        self._entries = NodeEntries(bus, self.leader)
        self._passes = Passes(ours, self._entries, clock, settings, self._applied)
        self._agents = objects.mirror(PODS, agent_of, _nothing, labels=settings.agent_labels)
        self._leases = objects.mirror(LEASES, lease_of, _nothing, namespace=NODE_LEASES)
        self._evidence = LostEvidence(settings.node_lease_s)
        pods = LostPods(ours, bus, clock, self.leader, evictor, settings.agent)
        self._lost = LostNodes(NodeMarks(ours), CnrConditions(ours, clock), clock, self.leader, pods)
        self._ledger: Ledger = {}
        self.on_lead: Callable[[], None] = lambda: None
        """Called when this one begins to lead."""

    @property
    def _heard(self) -> list[ObjectMirror[Any]]:
        """What tells of a node's life."""
        return [self._agents, self._leases]

    @property
    def leading(self) -> bool:
        """Whether this one may write now."""
        return self.leader.leading

    async def run(self) -> None:
        """Look until cancelled, and work while this one leads."""
        async with asyncio.TaskGroup() as tasks:
            for mirror in self._passes.mirrors + self._heard:
                tasks.create_task(mirror.run(), name="central-mirror")
            tasks.create_task(self.leader.run(self._lead), name="central-leader")

    async def _lead(self) -> None:
        self._entries.forget()
        self._lost.recall()
        self.on_lead()
        self._passes.wake()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._passes.run(), name="central-passes")
            tasks.create_task(self._lost.act_forever(), name="central-lost-nodes")

    def wake(self) -> None:
        """Something has changed that a pass must see."""
        self._passes.wake()

    def nodes(self) -> Mapping[str, NodeSeen] | None:
        """The Nodes with an agent, or that ever had one, by name; None while that is not known.

        A Node on which Sublet was never installed is silent for good, and nobody's loss.
        """
        agents, cnrs = _known(self._agents), _known(self._passes.cnrs)
        if self._passes.nodes.age_s is None or agents is None or cnrs is None:
            return None
        ours = {agent.node for agent in agents} | {cnr.name for cnr in cnrs if cnr.reported} | self._ledger.keys()
        return {node.name: node for node in self._passes.nodes.objects.values() if node.name in ours}

    def observe(self, ledger: Ledger, assessment: Assessment, rules: Rules, *, bus_well: bool) -> None:
        """What the bus tells of the nodes; the evidence of the API server is laid beside it."""
        self._ledger = ledger
        nodes, cnrs = self.nodes() or {}, _known(self._passes.cnrs) or []
        judged = self._evidence.look(
            nodes,
            _known(self._agents),
            _known(self._leases),
            assessment,
            self._clock.monotonic(),
            rules,
            bus_well=bus_well,
            api_age_s=self._api_age_s(),
        )
        pods = {name: self._evidence.pod(name) for name in judged}
        self._lost.look(Look(judged, nodes, {one.name: one for one in cnrs}, pods, assessment), rules)

    def _api_age_s(self) -> float | None:
        """For how long the API server may have been away, or a mirror behind; None: some was never there.

        A collection in which nothing happens is told of once a minute; that it is current is known by its watch.
        """
        answered_at_s = self.leader.answered_at_s
        mirrors = [(mirror.age_s, mirror.why) for mirror in (self._passes.nodes, self._passes.cnrs, *self._heard)]
        if answered_at_s is None or any(age_s is None for age_s, _ in mirrors):
            return None
        behind = [age_s for age_s, why in mirrors if age_s is not None and (why or age_s > WATCH_SILENCE_S)]
        return max(self._clock.monotonic() - answered_at_s, *behind, 0.0)

    def _applied(self, node: str) -> str | None:
        beat = self._ledger.get(node)
        return None if beat is None else beat.applied

    def failure(self) -> str:
        """Why the cluster is not as it should be; "" when it is, or while another one leads."""
        if not self.leading:
            return self.leader.failure
        try:
            for mirror in self._passes.mirrors:
                _ = mirror.objects
        except Unavailable as error:
            return str(error)
        return self._passes.failure

    def state(self) -> dict[str, Any]:
        """Who leads, what is refused, and every node that is not simply ready, with the reason."""
        return {
            "leader": self.leader.state(),
            "failure": self._passes.failure,
            "config_refused": self._passes.refused,
            "nodes_not_written": dict(islice(sorted({**self._passes.not_done, **self._lost.not_done}.items()), LISTED)),
            "objects_not_read": {uid: why for mirror in self._passes.mirrors + self._heard
                                 for uid, why in islice(mirror.unread.items(), LISTED)},
            "lost_nodes": self._lost.state(),
        }  # fmt: skip

    async def close(self) -> None:
        """Let another one lead at once."""
        await self.leader.release()
        await self._close()


def _known(mirror: ObjectMirror[T]) -> list[T] | None:
    return None if mirror.age_s is None else list(mirror.objects.values())


def _nothing() -> None:
    """Looked at once a second anyway."""
