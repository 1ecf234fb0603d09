"""Central in a cluster: mirrors of what it needs, who leads, and the leader's passes.

Everybody looks; the leader alone writes, and stops with its lease. A pass follows every change at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import structlog

from services.central.companions import clear_orphans, keep_companions
from services.central.config_control import CONFIG_KINDS, ConfigControl
from services.central.core.config_documents import kcc_of, target_of
from services.central.core.readiness import Assessment, Ledger
from services.central.core.rules import Rules
from services.central.core.seen import NODE_LEASES, CompanionSeen, NodeSeen, agent_of, companion_of, lease_of, node_of
from services.central.leader import Leader
from services.central.leader_objects import LeaderObjects
from services.central.lost_evidence import LostEvidence
from services.central.lost_nodes import LostNodes
from services.central.lost_pods import LostPods
from services.central.node_entries import NodeEntries
from services.central.settings import KubernetesSettings
from shared.core.api_kind import CNCS, CNRS, KCCS, LEASES, NODES, PODS
from shared.errors import SubletError, Unavailable
from shared.ports import Bus, Clock, EvictionActuator, ObjectMirror, Objects

log = structlog.get_logger()

T = TypeVar("T")
RETRY_S = 1.0
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
        self._clock, self._settings, self._wake = clock, settings, asyncio.Event()
        self.leader = Leader(objects, clock, identity, settings.lease)
        self._objects = LeaderObjects(objects, self.leader)
        self._entries = NodeEntries(bus, self.leader)
        self._config = ConfigControl(self._objects, self._entries, clock)
        self._nodes = objects.mirror(NODES, node_of, self._wake.set)
        self._cnrs = objects.mirror(CNRS, companion_of, self._wake.set)
        self._cncs = objects.mirror(CNCS, companion_of, self._wake.set)
        self._kccs = objects.mirror(KCCS, kcc_of, self._wake.set)
        self._targets = {k.plural: objects.mirror(k, target_of, self._wake.set) for k in CONFIG_KINDS}
        self._agents = objects.mirror(PODS, agent_of, _nothing, labels=settings.agent_labels)
        self._leases = objects.mirror(LEASES, lease_of, _nothing, namespace=NODE_LEASES)
        self._evidence = LostEvidence(settings.node_lease_s)
        pods = LostPods(self._objects, bus, clock, self.leader, evictor, settings.agent)
        self._lost = LostNodes(self._objects, clock, self.leader, pods)
        self._ledger: Ledger = {}
        self._failure = "no pass yet"
        self._cleared_at_s: float | None = None
        self.on_lead: Callable[[], None] = lambda: None
        """Called when this one begins to lead."""

    @property
    def _needed(self) -> list[ObjectMirror[Any]]:
        """What a pass is over."""
        return [self._nodes, self._cnrs, self._cncs, self._kccs, *self._targets.values()]

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
            for mirror in self._needed + self._heard:
                tasks.create_task(mirror.run(), name="central-mirror")
            tasks.create_task(self.leader.run(self._lead), name="central-leader")

    async def _lead(self) -> None:
        self._entries.forget()
        self._lost.recall()
        self.on_lead()
        self._wake.set()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pass_forever(), name="central-passes")
            tasks.create_task(self._lost.act_forever(), name="central-lost-nodes")

    def wake(self) -> None:
        """Something has changed that a pass must see."""
        self._wake.set()

    def nodes(self) -> Mapping[str, NodeSeen] | None:
        """The Nodes with an agent, or that ever had one, by name; None while that is not known.

        A Node on which Sublet was never installed is silent for good, and nobody's loss.
        """
        agents, cnrs = _known(self._agents), _known(self._cnrs)
        if self._nodes.age_s is None or agents is None or cnrs is None:
            return None
        ours = {agent.node for agent in agents} | {cnr.name for cnr in cnrs if cnr.reported} | self._ledger.keys()
        return {node.name: node for node in self._nodes.objects.values() if node.name in ours}

    def observe(self, ledger: Ledger, assessment: Assessment, rules: Rules, *, bus_well: bool) -> None:
        """What the bus tells of the nodes; the evidence of the API server is laid beside it."""
        self._ledger = ledger
        nodes, cnrs = self.nodes() or {}, _known(self._cnrs) or []
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
        self._lost.look(nodes, {one.name: one for one in cnrs}, assessment, judged, rules)

    def _api_age_s(self) -> float | None:
        """For how long the API server may have been away, or a mirror behind; None: some was never there.

        A collection in which nothing happens is told of once a minute; that it is current is known by its watch.
        """
        answered_at_s = self.leader.answered_at_s
        mirrors = [(mirror.age_s, mirror.why) for mirror in (self._nodes, self._cnrs, *self._heard)]
        if answered_at_s is None or any(age_s is None for age_s, _ in mirrors):
            return None
        behind = [age_s for age_s, why in mirrors if age_s is not None and (why or age_s > WATCH_SILENCE_S)]
        return max(self._clock.monotonic() - answered_at_s, *behind, 0.0)

    async def _pass_forever(self) -> None:
        while True:
            await self._woken()
            await self._clock.sleep(self._settings.settle_s)
            self._wake.clear()
            try:
                await self._pass()
            except SubletError as error:
                if str(error) != self._failure:
                    log.warning("cluster.pass_failed", why=str(error))
                self._failure = str(error)
                await self._clock.sleep(RETRY_S)
                self._wake.set()
            else:
                self._failure = ""

    async def _woken(self) -> None:
        try:
            async with asyncio.timeout(self._settings.resync_s):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _pass(self) -> None:
        """Companions, then configuration; each is tried even where another fails."""
        nodes = sorted(self._nodes.objects.values(), key=lambda node: node.name)
        cnrs, cncs = _by_name(self._cnrs.objects), _by_name(self._cncs.objects)
        failures: list[SubletError] = []
        for kind, there in ((CNRS, cnrs), (CNCS, cncs)):
            try:
                await keep_companions(self._objects, kind, nodes, there)
            except SubletError as error:
                failures.append(error)
        try:
            await self._config.pass_over(
                nodes,
                cncs,
                sorted(self._kccs.objects.values(), key=lambda kcc: kcc.kcc.name),
                {plural: list(mirror.objects.values()) for plural, mirror in self._targets.items()},
                self._said,
            )
            if self._clearing_is_due():
                for kind, there in ((CNRS, cnrs), (CNCS, cncs)):
                    await clear_orphans(self._objects, kind, nodes, there)
                self._cleared_at_s = self._clock.monotonic()
        except SubletError as error:
            failures.append(error)
        if failures:
            raise failures[0]

    def _clearing_is_due(self) -> bool:
        since_s = self._cleared_at_s
        return since_s is None or self._clock.monotonic() - since_s >= self._settings.resync_s

    def _said(self, node: str) -> str | None:
        beat = self._ledger.get(node)
        return None if beat is None else beat.applied

    def failure(self) -> str:
        """Why the cluster is not as it should be; "" when it is, or while another one leads."""
        if not self.leading:
            return self.leader.failure
        try:
            for mirror in self._needed:
                _ = mirror.objects
        except Unavailable as error:
            return str(error)
        return self._failure

    def state(self) -> dict[str, Any]:
        """Who leads, what is refused, and every node that is not simply ready, with the reason."""
        return {
            "leader": self.leader.state(),
            "failure": self._failure,
            "config_refused": dict(self._config.refused),
            "lost_nodes": self._lost.state(),
        }

    async def close(self) -> None:
        """Let another one lead at once."""
        await self.leader.release()
        await self._close()


def _by_name(objects: Mapping[str, CompanionSeen]) -> dict[str, CompanionSeen]:
    return {one.name: one for one in objects.values()}


def _known(mirror: ObjectMirror[T]) -> list[T] | None:
    return None if mirror.age_s is None else list(mirror.objects.values())


def _nothing() -> None:
    """Looked at once a second anyway."""
