"""CNR and CNC of every Node: made, kept as the Node is, and cleared when it is gone (central notes, section 5.4)."""

from collections.abc import Mapping, Sequence

import structlog

from services.central.core.seen import CompanionSeen, NodeSeen, companion_change, orphans
from shared.core.api_kind import NODES, ApiKind
from shared.errors import Conflict
from shared.ports import Objects

log = structlog.get_logger()


async def keep_companions(
    objects: Objects, kind: ApiKind, nodes: Sequence[NodeSeen], there: Mapping[str, CompanionSeen]
) -> None:
    """Bring the companions of one kind to the Nodes; writes only what differs. `there` is by name.

    Raises:
        SubletError: the API server is away or refuses; what was done stays.
    """
    for node in nodes:
        change = companion_change(node, there.get(node.name))
        if change is None:
            continue
        if node.name in there:
            meta = {key: value for key, value in change.items() if key != "name"}
            await objects.patch(kind, {"metadata": {"name": node.name, **meta}})
            continue
        try:
            await objects.create(kind, {"metadata": change, "spec": {}})
        except Conflict:
            log.info("companion.there_already", kind=kind.kind, node=node.name)


async def clear_orphans(
    objects: Objects, kind: ApiKind, nodes: Sequence[NodeSeen], there: Mapping[str, CompanionSeen]
) -> None:
    """Delete companions of Nodes that are gone; the server itself is asked for each, a mirror may be behind.

    Raises:
        SubletError: as `keep_companions`.
    """
    for orphan in orphans(nodes, list(there.values())):
        if await objects.get(NODES, orphan.name) is None:
            await objects.delete(kind, orphan.name, uid=orphan.uid)
            log.info("companion.cleared", kind=kind.kind, node=orphan.name)
