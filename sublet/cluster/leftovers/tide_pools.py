"""`clear_tide_pools` removes the marks of tide pools from their nodes and releases the pools: a remaining taint
would keep a node closed to one side after an uninstallation."""

from collections.abc import Callable

from services.central.core.tide.edits import marked, node_patch
from services.central.core.tide.marks import POOL_LABEL
from services.central.core.tide.pool import FINALIZER, POOLS, TidePoolSeen, pool_of
from services.central.core.tide.seen import tide_node_of
from shared.adapters.kube.client import Kube, KubeError
from shared.core.api_kind import NODES

MANAGER, NOT_FOUND = "sublet-uninstall", 404


async def clear_tide_pools(kube: Kube, say: Callable[[str], None]) -> None:
    """Take the marks first, and then the finalizers; nothing where the cluster does not have the kind.

    Raises:
        KubeError: the API server refuses, or somebody wrote a node meanwhile; what is done stays done.
        Unavailable: it cannot be reached.
    """
    try:
        pools = [pool_of(one) for one in (await kube.list(POOLS.collection()))["items"]]
    except KubeError as error:
        if error.status == NOT_FOUND:
            return
        raise
    for pool in pools:
        await _clear(kube, pool, say)
        if FINALIZER in pool.finalizers:
            others = [name for name in pool.finalizers if name != FINALIZER]
            await kube.merge(POOLS.path(pool.name), {"metadata": {"finalizers": others or None}}, manager=MANAGER)


async def _clear(kube: Kube, pool: TidePoolSeen, say: Callable[[str], None]) -> None:
    for document in (await kube.list(NODES.collection()))["items"]:
        node = tide_node_of(document)
        notes = (node.change, node.last)
        if node.labels.get(POOL_LABEL) != pool.name and not any(note and note.pool == pool.name for note in notes):
            continue
        edit = marked(node, None, pool.marks, None)
        await kube.merge(NODES.path(node.name), node_patch(document, node, edit), manager=MANAGER)
        say(f"nodes/{node.name}: marks of tide pool {pool.name} removed")
