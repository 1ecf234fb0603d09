"""The question `nodes_lost` about a cluster: its nodes, their places, and the reclaimed pods of those in question."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from services.central.core.objects.companions import companion_of
from services.central.core.objects.nodes import node_of
from shared.adapters.kube.client import Document, Kube, KubeError
from shared.core.api_kind import CNRS, NODES, PODS
from shared.core.object_reader import ObjectReader
from shared.core.pods.kube_pod import pod_of
from shared.errors import Refused, Unavailable

MOST_LISTED = 500
"""Nodes whose pods are looked at; more at once are beyond what central would ever act on."""
AT_ONCE = 8
NOT_FOUND = 404


async def read_question(kube: Kube, silent: Sequence[str], **more: Any) -> Mapping[str, Any]:
    """What is asked, if these nodes fell silent now; only nodes with an agent, or that had one, count.

    Raises:
        Refused: too many, or the cluster does not have Sublet.
        Unavailable: no answer, or no right to read.
    """
    if len(silent) > MOST_LISTED:
        raise Refused(f"{len(silent)} nodes: want {MOST_LISTED} at most", reason="option")
    try:
        cnrs = [ObjectReader(companion_of).read("", one, None) async for one in _items(kube, CNRS.collection())]
        ours = {cnr.name for cnr in cnrs if cnr is not None and cnr.reported}
        there = [ObjectReader(node_of).read("", one, None) async for one in _items(kube, NODES.collection())]
        seen = [node for node in there if node is not None and node.name in ours]
        pods = await _reclaimed_pods(kube, sorted(set(silent) & {node.name for node in seen}))
    except KubeError as error:
        if error.status == NOT_FOUND:
            raise Refused("no CustomNodeResources there: Sublet is not installed", reason="kind") from error
        raise Unavailable(str(error), reason=error.reason) from error
    nodes = [
        {"name": node.name, "pool": node.place.pool, "zone": node.place.zone, "reclaimed_pods": pods.get(node.name, 0)}
        for node in seen
    ]
    return {"nodes": nodes, "silent": list(silent), **more}


async def _reclaimed_pods(kube: Kube, nodes: Sequence[str]) -> dict[str, int]:
    """How many each of them has that runs or waits there."""
    width = asyncio.Semaphore(AT_ONCE)

    async def count(node: str) -> int:
        async with width:
            found = await kube.list(PODS.collection(), fieldSelector=f"spec.nodeName={node}")
        pods = [pod for document in found.get("items") or () if (pod := pod_of(document)) is not None]
        return sum(pod.qos == "reclaimed_cores" and pod.phase in ("Pending", "Running") for pod in pods)

    counts = await asyncio.gather(*(count(node) for node in nodes))
    return dict(zip(nodes, counts, strict=True))


async def _items(kube: Kube, path: str) -> Any:
    async for page in kube.pages(path):
        for one in page.get("items") or ():
            document: Document = one
            yield document
