"""The controller of NodeSLO objects: each node's strategies as the ConfigMap has them, written by the leader.

By itself, not in the pass over configuration: thousands of objects take their time, and no node waits for its settings
meanwhile, which go over the bus.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from services.central.core.objects.node_slos import NodeSloSeen
from services.central.core.objects.nodes import NodeSeen
from services.central.core.slo.node_strategies import node_slo_spec
from services.central.ports.config import PerNodeWork
from services.central.settings import KubernetesSettings
from services.central.slo.follower import SloFollower
from shared.errors import SubletError
from shared.ports import Clock, ObjectMirror

log = structlog.get_logger()

RETRY_S = 5.0
WARN_AGAIN_S = 1200.0
"""What is wrong is said again while it lasts: the API server forgets an Event (docs/facts/kubernetes.md#events)."""


class NodeSloWriter(PerNodeWork, Protocol):
    """Writes NodeSLOs, and what is wrong with the ConfigMap. Each method raises SubletError where it cannot."""

    @property
    def left_alone(self) -> Mapping[str, str]:
        """NodeSLOs that somebody else writes, by node, and who."""
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
    """What the controller sees; `changed` is set when any of it has changed."""

    nodes: ObjectMirror[NodeSeen]
    node_slos: ObjectMirror[NodeSloSeen]
    follower: SloFollower
    changed: asyncio.Event


class NodeSloController:
    """One pass after another over all nodes; it writes what differs alone."""

    def __init__(self, view: SloView, writer: NodeSloWriter, clock: Clock, settings: KubernetesSettings) -> None:
        self._view, self._writer, self._clock, self._settings = view, writer, clock, settings
        self._warned: tuple[str, list[str]] = ("", [])
        self._warned_at_s = float("-inf")
        self.event_failure = ""
        """Why what is wrong with the ConfigMap could not be said there; "" where it was, or nothing is."""
        self.failure = ""
        """Why the newest pass failed; "" after a good one."""

    @property
    def mirror(self) -> ObjectMirror[NodeSloSeen]:
        """Of NodeSLOs, to be run."""
        return self._view.node_slos

    def state(self, most: int) -> dict[str, Any]:
        """What is not written and why, of each at most so many nodes."""
        failures, left_alone = sorted(self._writer.failures.items()), sorted(self._writer.left_alone.items())
        return {
            "failure": self.failure,
            "event_failure": self.event_failure,
            "not_written": dict(failures[:most]),
            "left_alone": dict(left_alone[:most]),
        }

    async def run(self) -> None:
        """Run pass after pass until cancelled; a pass that fails is said and tried again."""
        while True:
            self._view.changed.clear()
            try:
                await self.reconcile()
            except SubletError as error:
                if str(error) != self.failure:
                    log.warning("node_slos.pass_failed", why=str(error))
                self.failure = str(error)
                await self._clock.sleep(RETRY_S)
            else:
                self.failure = ""
                await self._until_due()
            await self._clock.sleep(self._settings.settle_s)

    async def _until_due(self) -> None:
        again_s = [self._settings.resync_s]
        if (due_in_s := self._writer.due_in_s) is not None:
            again_s.append(due_in_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(again_s)):
                await self._view.changed.wait()

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
        """Say what is wrong, and again while it lasts. Where that fails the objects are written all the same, and a
        later pass says it."""
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
