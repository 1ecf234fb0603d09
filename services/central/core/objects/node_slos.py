"""NodeSLO objects: the strategies of a node in Koordinator's shape, one for each Node.

Facts: docs/facts/koordinator-slo-config.md#nodeslo-objects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.central.core.objects.companions import companion_metadata
from services.central.core.objects.nodes import NodeSeen


@dataclass(frozen=True, slots=True)
class NodeSloSeen:
    """A NodeSLO."""

    name: str
    uid: str
    spec: Mapping[str, Any]
    owners: frozenset[str]
    """UIDs of its owners."""
    writers: frozenset[str]
    """Field managers of its spec."""


def node_slo_of(document: Mapping[str, Any]) -> NodeSloSeen:
    """A NodeSLO of its document."""
    meta, spec = document["metadata"], document.get("spec")
    return NodeSloSeen(
        name=meta["name"],
        uid=meta["uid"],
        spec=spec if isinstance(spec, Mapping) else {},
        owners=frozenset(row["uid"] for row in meta.get("ownerReferences") or ()),
        writers=frozenset(
            str(row.get("manager"))
            for row in meta.get("managedFields") or ()
            if "f:spec" in (row.get("fieldsV1") or {}) and not row.get("subresource")
        ),
    )


def foreign_writer(seen: NodeSloSeen, ours: str) -> str:
    """Return another writer of its spec; "" if there is none. Two writers of one object would overwrite each other
    forever."""
    return min(seen.writers - {ours}, default="")


def node_slo_document(node: NodeSeen, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the NodeSLO of a Node, which owns it, so Kubernetes deletes it with the Node."""
    meta = companion_metadata(node.name, node.uid, {})
    return {"metadata": {"name": meta["name"], "ownerReferences": meta["ownerReferences"]}, "spec": dict(spec)}


def orphaned_node_slos(nodes: Sequence[NodeSeen], there: Sequence[NodeSloSeen], ours: str) -> list[NodeSloSeen]:
    """Return those of missing Nodes that no other writer owns, ascending by name."""
    names = {node.name for node in nodes}
    found = [one for one in there if one.name not in names and one.writers <= {ours}]
    return sorted(found, key=lambda one: one.name)
