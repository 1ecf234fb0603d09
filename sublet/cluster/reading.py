"""Reads Sublet's state from the API server: one reading for `kubectl sublet status` and `get`, without a bus."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.adapters.kube.client import Document, Kube, KubeError
from shared.contracts.cluster.pauses import Pause
from shared.core.api_kind import ADMIN_QOS_CONFIGS, CNRS, EVICTION_CONFIGS, KCCS, LEASES, NODES, ApiKind
from shared.errors import Refused, Unavailable
from shared.ports import Clock
from sublet.cluster.pausing import read_in_cluster

NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """Documents of one moment."""

    now: datetime
    nodes: Sequence[Document]
    node_objects: Sequence[Document]
    """CustomNodeResources."""
    lease: Document | None
    """Central's; None: nobody has ever led."""
    configs: Sequence[Document]
    """KatalystCustomConfigs and the objects that they declare."""
    pauses: Sequence[Pause] | None = ()
    """Of the cluster and of pools, also those that are over; None: this user may not read them."""


async def read_cluster(kube: Kube, clock: Clock, namespace: str) -> ClusterReading:
    """Nodes, what they offer, who leads, and the configuration objects.

    Raises:
        Unavailable: no answer, or no right to read; names what cannot be read.
        Refused: the cluster does not have Sublet's kinds.
    """
    nodes, node_objects, *configs = await asyncio.gather(
        *(_items(kube, kind) for kind in (NODES, CNRS, KCCS, EVICTION_CONFIGS, ADMIN_QOS_CONFIGS))
    )
    return ClusterReading(
        clock.wall(),
        nodes,
        node_objects,
        await _lease(kube, namespace),
        [one for kind in configs for one in kind],
        await _pauses(kube, namespace),
    )


async def read_nodes(kube: Kube, clock: Clock) -> ClusterReading:
    """Nodes and what they offer alone.

    Raises:
        Unavailable, Refused: as `read_cluster`.
    """
    nodes, node_objects = await asyncio.gather(*(_items(kube, kind) for kind in (NODES, CNRS)))
    return ClusterReading(clock.wall(), nodes, node_objects, None, ())


async def read_node_objects(kube: Kube, name: str = "") -> list[Document]:
    """All CustomNodeResources, or that of one node.

    Raises:
        Unavailable, Refused: as `read_cluster`; also where that node has none.
    """
    if not name:
        return [_plain(one) for one in await _items(kube, CNRS)]
    try:
        return [_plain(await kube.get(CNRS.path(name)))]
    except KubeError as error:
        if error.status == NOT_FOUND:
            raise Refused(f"node {name}: nothing is reported; see kubectl get kcnr", reason="not_found") from error
        raise Unavailable(str(error), reason=error.reason) from error


def _plain(document: Document) -> Document:
    """Without the record of who wrote which field, as kubectl shows objects."""
    meta = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": meta}


async def _items(kube: Kube, kind: ApiKind) -> list[Document]:
    keep = _without_images if kind == NODES else _itself
    found: list[Document] = []
    try:
        # Page by page: of 10 000 Nodes the images alone would be a gigabyte.
        async for page in kube.pages(kind.collection()):
            found += [{**kind.head, **keep(one)} for one in page.get("items") or ()]
    except KubeError as error:
        if error.status == NOT_FOUND:
            raise Refused(
                f"the cluster has no {kind.plural}: Sublet is not installed there; see sublet doctor --cluster",
                reason="not_installed",
            ) from error
        raise Unavailable(str(error), reason=error.reason) from error
    return found


def _itself(document: Document) -> Document:
    return document


def _without_images(node: Document) -> Document:
    status = {key: value for key, value in (node.get("status") or {}).items() if key != "images"}
    return {**_plain(node), "status": status}


async def _lease(kube: Kube, namespace: str) -> Document | None:
    try:
        return await kube.get(LEASES.path("sublet-central", namespace))
    except KubeError as error:
        if error.status == NOT_FOUND:
            return None
        raise Unavailable(str(error), reason=error.reason) from error


async def _pauses(kube: Kube, namespace: str) -> tuple[Pause, ...] | None:
    try:
        return await read_in_cluster(kube, namespace)
    except Unavailable:  # what a user may not read hides nothing else from him
        return None
