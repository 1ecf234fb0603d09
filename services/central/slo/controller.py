"""The controller of NodeSLO objects: the leader writes each node's strategies according to the ConfigMap.

It is separate from the pass over configuration, because thousands of objects take their time, and no node must wait for
its settings meanwhile, which travel over the bus.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from services.central.core.objects.node_slos import NodeSloSeen
from services.central.core.objects.nodes import NodeSeen
from services.central.core.slo.node_strategies import node_slo_spec
from services.central.leadership.passes import Passes, PassSchedule
from services.central.ports.config import PerNodeWork
from services.central.settings import KubernetesSettings
from services.central.slo.follower import SloFollower
from shared.errors import SubletError
from shared.ports import Clock, ObjectMirror

log = structlog.get_logger()

WARN_AGAIN_S = 1200.0
"""Problems are reported again while they last, because the API server deletes Events
(docs/facts/kubernetes.md#events)."""


class NodeSloWriter(PerNodeWork, Protocol):
    """Writes NodeSLOs, and what is wrong with the ConfigMap. Each method raises SubletError where it cannot."""

    @property
    def left_alone(self) -> Mapping[str, str]:
        """NodeSLOs that another writer owns, by node, with its name."""
        ...

    async def write(
        self, nodes: Sequence[NodeSeen], wanted: Mapping[str, Mapping[str, Any]], there: Mapping[str, NodeSloSeen]
    ) -> None:
        """Bring each node's NodeSLO to its spec; `wanted` and `there` are by name."""
        ...

    async def clear(self, nodes: Sequence[NodeSeen], there: Mapping[str, NodeSloSeen]) -> None:
        """Delete those of Nodes that are gone."""
        ...

    async def warn(self, uid: str, problems: Sequence[str], every_s: float) -> None:
        """Say at the ConfigMap with this UID what is wrong with it; the same words once in so many seconds."""
        ...


@dataclass(frozen=True, slots=True)
class SloView:
    """What the controller reads; `changed` is set when any of it has changed."""

    nodes: ObjectMirror[NodeSeen]
    node_slos: ObjectMirror[NodeSloSeen]
    follower: SloFollower
    changed: asyncio.Event


class NodeSloController:
    """Runs passes over all nodes, and writes only differences."""

    def __init__(self, view: SloView, writer: NodeSloWriter, clock: Clock, settings: KubernetesSettings) -> None:
        self._view, self._writer, self._clock, self._settings = view, writer, clock, settings
        self._warned: tuple[str, list[str]] = ("", [])
        self._warned_at_s = float("-inf")
        self.event_failure = ""
        """Why problems of the ConfigMap could not be reported there; "" if they were, or there are none."""
        schedule = PassSchedule(self._due_in_s, settings.settle_s)
        self._passes = Passes("node_slos", clock, view.changed, self.reconcile, schedule)

    @property
    def failure(self) -> str:
        """Why the newest pass failed; "" after a good one."""
        return self._passes.failure

    @property
    def mirror(self) -> ObjectMirror[NodeSloSeen]:
        """Of NodeSLOs, to be run."""
        return self._view.node_slos

    def state(self, most: int) -> dict[str, Any]:
        """Return what is not written and why, for at most so many nodes."""
        failures, left_alone = sorted(self._writer.failures.items()), sorted(self._writer.left_alone.items())
        return {
            "failure": self.failure,
            "event_failure": self.event_failure,
            "not_written": dict(failures[:most]),
            "left_alone": dict(left_alone[:most]),
        }

    async def run(self) -> None:
        """Run passes until cancelled; a failed pass is logged and repeated."""
        await self._passes.run()

    def _due_in_s(self) -> float:
        due_in_s = self._writer.due_in_s
        return self._settings.resync_s if due_in_s is None else min(self._settings.resync_s, due_in_s)

    async def reconcile(self) -> None:
        """Write what differs; while the ConfigMap was never seen, nothing.

        Raises:
            SubletError: the API server is away or refuses, or another one leads.
        """
        follower = self._view.follower
        if follower.failure:
            return
        nodes = sorted(self._view.nodes.objects.values(), key=lambda node: node.name)
        there = {one.name: one for one in self._view.node_slos.objects.values()}
        wanted = {node.name: self._wanted(node, there.get(node.name)) for node in nodes}
        await self._writer.write(nodes, wanted, there)
        await self._writer.clear(nodes, there)
        await self._warn()

    async def _warn(self) -> None:
        """Report problems, and repeat them while they last. If that fails, the objects are written anyway, and a
        later pass reports them."""
        problems, now_s = (self._view.follower.uid, self._view.follower.problems), self._clock.monotonic()
        if problems == self._warned and now_s - self._warned_at_s < WARN_AGAIN_S:
            return
        try:
            if problems[1]:
                await self._writer.warn(*problems, WARN_AGAIN_S)
        except SubletError as error:
            if str(error) != self.event_failure:
                log.warning("slo.event_not_written", why=str(error))
            self.event_failure = str(error)
        else:
            self._warned, self._warned_at_s, self.event_failure = problems, now_s, ""

    def _wanted(self, node: NodeSeen, there: NodeSloSeen | None) -> dict[str, Any]:
        return node_slo_spec(self._view.follower.of(node.labels), {} if there is None else there.spec)
