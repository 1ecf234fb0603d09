"""CNR and CNC of every Node: made, kept as the Node is, and cleared when it is gone."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from services.central.core.objects.seen import CompanionSeen, NodeSeen, companion_change, orphans
from services.central.leadership.each_node import EachNode
from shared.core.api_kind import NODES, ApiKind
from shared.errors import Conflict
from shared.ports import Clock, Objects

log = structlog.get_logger()


class Companions:
    """The companions of one kind. What fails for one node holds up no other."""

    def __init__(self, objects: Objects, clock: Clock, kind: ApiKind) -> None:
        self._objects, self._kind = objects, kind
        self.keeping = EachNode(clock, f"keep {kind.kind}")
        self.clearing = EachNode(clock, f"clear {kind.kind}")

    async def keep(self, nodes: Sequence[NodeSeen], there: Mapping[str, CompanionSeen]) -> None:
        """Bring them to the Nodes; writes only what differs. `there` is by name.

        Raises:
            Unavailable: the API server is away, or another one leads; what was done stays.
        """
        by_name = {node.name: node for node in nodes}

        async def one(name: str) -> None:
            change = companion_change(by_name[name], there.get(name))
            if change is not None:
                await self._write(name, change, there_already=name in there)

        self.keeping.keep(by_name)
        await self.keeping.each(list(by_name), one)

    async def _write(self, name: str, change: Mapping[str, Any], *, there_already: bool) -> None:
        if there_already:
            meta = {key: value for key, value in change.items() if key != "name"}
            await self._objects.patch(self._kind, {"metadata": {"name": name, **meta}})
            return
        try:
            await self._objects.create(self._kind, {"metadata": change, "spec": {}})
        except Conflict:
            log.info("companion.there_already", kind=self._kind.kind, node=name)

    async def clear(self, nodes: Sequence[NodeSeen], there: Mapping[str, CompanionSeen]) -> None:
        """Delete those of Nodes that are gone; the server itself is asked for each, a mirror may be behind.

        Raises:
            Unavailable: as `keep`.
        """
        left_behind = {orphan.name: orphan.uid for orphan in orphans(nodes, list(there.values()))}

        async def one(name: str) -> None:
            if await self._objects.get(NODES, name) is None:
                await self._objects.delete(self._kind, name, uid=left_behind[name])
                log.info("companion.cleared", kind=self._kind.kind, node=name)

        self.clearing.keep(left_behind)
        await self.clearing.each(list(left_behind), one)
