"""The writer of tide pools: labels, taints and notes of Nodes, and the pools' finalizers and statuses."""

from collections.abc import Callable, Sequence
from typing import Any

import structlog

from services.central.core.tide.edits import NodeEdit, node_patch
from services.central.core.tide.marks import POOL_LABEL
from services.central.core.tide.pool import FINALIZER, POOLS, TidePoolSeen, pool_of
from services.central.core.tide.seen import TideNodeSeen, tide_node_of, tide_pod_of
from services.central.ports.decisions import DecisionLog
from services.central.ports.nodes import PodEvictions
from services.central.ports.tide import PodOnNode, TidePorts
from shared.core.api_kind import NODES, PODS
from shared.core.pods.kube_pod import pod_of
from shared.ports import Objects

log = structlog.get_logger()


class TideObjects:
    """Writes through objects that only the leader may write."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def pods(self, node: str) -> Sequence[PodOnNode]:
        """Return the running pods of a node from the API server itself, because a mirror may be behind."""
        documents = await self._objects.list(PODS, fields=f"spec.nodeName={node}")
        found = ((tide_pod_of(document), pod_of(document)) for document in documents)
        return [PodOnNode(seen, pod) for seen, pod in found if seen is not None]

    async def marked(self, pool: str) -> Sequence[TideNodeSeen]:
        """Return the Nodes with a mark of this pool from the API server itself, because none of them may be missed."""
        nodes = [tide_node_of(document) for document in await self._objects.list(NODES)]
        return [
            node
            for node in nodes
            if node.labels.get(POOL_LABEL) == pool
            or any(note and note.pool == pool for note in (node.change, node.last))
        ]

    async def edit(self, node: TideNodeSeen, edit: Callable[[TideNodeSeen], NodeEdit]) -> bool:
        """Apply the edit to the current Node; a Node recreated under the same name is a different one.

        Raises:
            Conflict: it was written in between; the next pass tries again.
            SubletError: the API server is away or refuses, or another one leads.
        """
        document = await self._objects.get(NODES, node.name)
        if document is None or document["metadata"]["uid"] != node.uid:
            return False
        now = tide_node_of(document)
        wanted = edit(now)
        if not wanted.changes(now):
            return False
        await self._objects.patch(NODES, node_patch(document, now, wanted))
        return True

    async def set_finalizer(self, seen: TidePoolSeen, *, held: bool) -> None:
        """Have our finalizer at the pool, or not; those of others stay."""
        document = await self._objects.get(POOLS, seen.name)
        if document is None or document["metadata"]["uid"] != seen.uid:
            return
        meta = document["metadata"]
        others = [one for one in meta.get("finalizers") or () if one != FINALIZER]
        wanted = [*others, FINALIZER] if held else others
        if wanted != (meta.get("finalizers") or []):
            head = {"name": seen.name, "resourceVersion": meta["resourceVersion"]}
            await self._objects.patch(POOLS, {"metadata": {**head, "finalizers": wanted or None}})
            log.info("tide_pool.held" if held else "tide_pool.let_go", pool=seen.name)

    async def write_status(self, name: str, status: dict[str, Any]) -> None:
        """Write these fields of a pool's status."""
        await self._objects.patch(POOLS, {"metadata": {"name": name}, "status": status}, status=True)


def tide_ports(
    objects: Objects, changed: Callable[[], None], evictions: PodEvictions, decisions: DecisionLog
) -> TidePorts:
    """Mirrors that call `changed`, and the writer; they are filled once somebody runs them."""
    return TidePorts(
        pools=objects.mirror(POOLS, pool_of, changed),
        nodes=objects.mirror(NODES, tide_node_of, changed),
        pods=objects.mirror(PODS, tide_pod_of, changed),
        writer=TideObjects(objects),
        evictions=evictions,
        decisions=decisions,
    )
