"""The writer of companions: CNR and CNC of every Node are made, follow its labels, and are deleted when it is gone."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from services.central.core.objects.companions import CompanionSeen, companion_change, orphans
from services.central.core.objects.nodes import NodeSeen
from services.central.leadership.each_node import EachNode
from shared.core.api_kind import NODES, ApiKind
from shared.errors import Conflict
from shared.ports import Clock, Objects

log = structlog.get_logger()


class Companions:
    """The companions of one kind. A failure for one node does not delay the others."""

    def __init__(self, objects: Objects, clock: Clock, kind: ApiKind) -> None:
        self._objects, self._kind = objects, kind
        self._writing = EachNode(clock, f"keep {kind.kind}")
        self._clearing = EachNode(clock, f"clear {kind.kind}")

    @property
    def failures(self) -> Mapping[str, str]:
        """Why a node's companion could not be written or deleted, by node."""
        return {**self._writing.failures, **self._clearing.failures}

    @property
    def due_in_s(self) -> float | None:
        """Seconds until the next try of one that failed; None while none has."""
        due_s = [at_s for work in (self._writing, self._clearing) if (at_s := work.due_in_s) is not None]
        return min(due_s, default=None)

    async def write(self, nodes: Sequence[NodeSeen], there: Mapping[str, CompanionSeen]) -> None:
        """Bring them to the Nodes; writes only what differs. `there` is by name.

        Raises:
            Unavailable: the API server is away, or another one leads; what was done stays.
        """
        by_name = {node.name: node for node in nodes}

        async def one(name: str) -> None:
            change = companion_change(by_name[name], there.get(name))
            if change is not None:
                await self._write_one(name, change, there_already=name in there)

        self._writing.retain(by_name)
        await self._writing.each(list(by_name), one)

    async def _write_one(self, name: str, change: Mapping[str, Any], *, there_already: bool) -> None:
        if there_already:
            meta = {key: value for key, value in change.items() if key != "name"}
            await self._objects.patch(self._kind, {"metadata": {"name": name, **meta}})
            return
        try:
            await self._objects.create(self._kind, {"metadata": change, "spec": {}})
        # The mirror may be behind: a former leader or another client created it. The next pass compares it.
        except Conflict:
            log.info("companion.there_already", kind=self._kind.kind, node=name)

    async def clear(self, nodes: Sequence[NodeSeen], there: Mapping[str, CompanionSeen]) -> None:
        """Delete companions of Nodes that are gone; each is checked with the API server, because a mirror may be
        behind.

        Raises:
            Unavailable: as `write`.
        """
        left_behind = {orphan.name: orphan.uid for orphan in orphans(nodes, list(there.values()))}

        async def one(name: str) -> None:
            if await self._objects.get(NODES, name) is None:
                await self._objects.delete(self._kind, name, uid=left_behind[name])
                log.info("companion.cleared", kind=self._kind.kind, node=name)

        self._clearing.retain(left_behind)
        await self._clearing.each(list(left_behind), one)
