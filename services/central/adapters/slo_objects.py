"""The writer of NodeSLO objects, and of Events about Koordinator's ConfigMap."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from services.central.adapters.cnr_conditions import MANAGER
from services.central.core.objects.node_slos import (
    NodeSloSeen,
    foreign_writer,
    node_slo_document,
    node_slo_of,
    orphaned_node_slos,
)
from services.central.core.objects.nodes import NodeSeen
from services.central.leadership.each_node import EachNode
from services.central.settings import SloConfigMapSettings
from shared.core.api_kind import CONFIG_MAPS, NODE_SLOS, NODES, ApiKind
from shared.errors import Conflict
from shared.ports import Clock, Objects

log = structlog.get_logger()

EVENTS = ApiKind("events.k8s.io", "v1", "Event", "events", namespaced=True, status=False)
CONTROLLER, REASON, ACTION = "sublet.io/central", "SloConfigRefused", "FollowConfigMap"
MAX_NOTE_BYTES = 1024
"""Limit of the API server, in bytes of UTF-8."""

Spec = Mapping[str, Any]


class SloObjects:
    """Writes through objects that only the leader may write. A failure for one node does not delay the others."""

    def __init__(self, objects: Objects, clock: Clock, settings: SloConfigMapSettings) -> None:
        self._objects, self._clock, self._settings = objects, clock, settings
        self._writing = EachNode(clock, "write NodeSLO")
        self._clearing = EachNode(clock, "clear NodeSLO")
        self._answered: dict[str, tuple[Spec, Spec]] = {}
        """By node what was written last, and what the server made of it: a schema may fill in or drop fields."""
        self.left_alone: Mapping[str, str] = {}
        """NodeSLOs that another writer owns, by node, with its name."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Why a node's NodeSLO could not be written or deleted, by node."""
        return {**self._writing.failures, **self._clearing.failures}

    @property
    def due_in_s(self) -> float | None:
        """Seconds until the next try of one that failed; None while none has."""
        due_s = [at_s for work in (self._writing, self._clearing) if (at_s := work.due_in_s) is not None]
        return min(due_s, default=None)

    async def write(
        self, nodes: Sequence[NodeSeen], wanted: Mapping[str, Spec], there: Mapping[str, NodeSloSeen]
    ) -> None:
        """Bring each node's NodeSLO to its spec, one after the other; `wanted` and `there` are by name.

        Raises:
            Unavailable: the API server is away, or another one leads; what was done stays.
        """
        by_name = {node.name: node for node in nodes}
        self._leave_alone({name: who for name, one in there.items() if (who := foreign_writer(one, MANAGER))})

        async def one(name: str) -> None:
            if name not in self.left_alone and not self._as_wanted(by_name[name], wanted[name], there.get(name)):
                document = node_slo_document(by_name[name], wanted[name])
                made = await self._objects.apply(NODE_SLOS, document, manager=MANAGER)
                self._answered[name] = (wanted[name], node_slo_of(made).spec)

        self._writing.retain(by_name)
        self._answered = {name: told for name, told in self._answered.items() if name in by_name}
        await self._writing.each(list(by_name), one)

    def _as_wanted(self, node: NodeSeen, spec: Spec, there: NodeSloSeen | None) -> bool:
        if there is None or node.uid not in there.owners:
            return False
        return there.spec == spec or self._answered.get(node.name) == (spec, there.spec)

    def _leave_alone(self, found: Mapping[str, str]) -> None:
        for who in sorted(set(found.values()) - set(self.left_alone.values())):
            log.warning("node_slo.left_alone", writer=who, nodes=sum(one == who for one in found.values()))
        self.left_alone = found

    async def clear(self, nodes: Sequence[NodeSeen], there: Mapping[str, NodeSloSeen]) -> None:
        """Delete those of Nodes that are gone; each is checked with the API server, because a mirror may be behind.

        Raises:
            Unavailable: as `write`.
        """
        left_behind = {one.name: one.uid for one in orphaned_node_slos(nodes, list(there.values()), MANAGER)}

        async def one(name: str) -> None:
            if await self._objects.get(NODES, name) is None:
                await self._objects.delete(NODE_SLOS, name, uid=left_behind[name])
                log.info("node_slo.cleared", node=name)

        self._clearing.retain(left_behind)
        await self._clearing.each(list(left_behind), one)

    async def warn(self, uid: str, problems: Sequence[str], every_s: float) -> None:
        """Report problems of the ConfigMap with this UID in an Event; the same text once per `every_s`.

        Each report is a new Event whose name contains the time, so a new leader repeats nothing, and needs no right to
        change Events.

        Raises:
            SubletError: the API server is away or refuses, or another one leads.
        """
        note = "; ".join(problems)
        turn = int(self._clock.wall().timestamp() // every_s)
        mark = hashlib.sha256(f"{uid}\0{turn}\0{note}".encode()).hexdigest()[:16]
        place, name = self._settings.namespace, self._settings.name
        document = {
            "metadata": {"name": f"{name}.{mark}", "namespace": place},
            "eventTime": f"{self._clock.wall():%Y-%m-%dT%H:%M:%S.%f}Z",
            "type": "Warning",
            "reason": REASON,
            "action": ACTION,
            "note": _bounded(note),
            "regarding": {**CONFIG_MAPS.head, "namespace": place, "name": name, "uid": uid},
            "reportingController": CONTROLLER,
            "reportingInstance": MANAGER,
        }
        try:
            await self._objects.create(EVENTS, document)
        except Conflict:  # said before, perhaps by another one that led
            log.debug("slo.event_there_already", config_map=self._settings.path)


def _bounded(note: str) -> str:
    """The note, or its beginning and "…"; a character stays whole."""
    encoded, end = note.encode(errors="replace"), "…"
    if len(encoded) <= MAX_NOTE_BYTES:
        return encoded.decode()
    return encoded[: MAX_NOTE_BYTES - len(end.encode())].decode(errors="ignore") + end
