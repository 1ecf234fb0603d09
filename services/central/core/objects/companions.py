"""The CNR and CNC of a Node: same name and labels, owned by it.

Facts: docs/facts/katalyst-cluster.md#companions-of-a-node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.central.core.lost_nodes.cnr_conditions import OURS, CnrCondition
from services.central.core.lost_nodes.lost_node import CnrTaint
from services.central.core.objects.cnc import ConfigEntry
from services.central.core.objects.nodes import NodeSeen


@dataclass(frozen=True, slots=True)
class CompanionSeen:
    """A CNR with its taints and the conditions that central writes, or a CNC with its entries.

    Nothing that others change all the time: each change of it is a reason for a pass over all nodes.
    """

    name: str
    uid: str
    labels: Mapping[str, str]
    owners: frozenset[str]
    """UIDs of its owners."""
    taints: tuple[CnrTaint, ...] = ()
    conditions: tuple[CnrCondition, ...] = ()
    """Those that central writes."""
    entries: tuple[ConfigEntry, ...] = ()
    reported: bool = False
    """Whether an agent has ever written into the CNR what its node offers."""


def companion_metadata(name: str, uid: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata of a Node's companion, whatever exists now; its labels are exactly the Node's.

    The Node owns it as its controller, so Kubernetes deletes it with the Node.
    """
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {"name": name, "labels": dict(sorted(labels.items())), "ownerReferences": [owner]}


def companion_of(document: Mapping[str, Any]) -> CompanionSeen:
    """A CNR or CNC of its document; what cannot be read of taints and entries is left out."""
    meta, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    return CompanionSeen(
        name=meta["name"],
        uid=meta["uid"],
        labels=dict(meta.get("labels") or {}),
        owners=frozenset(row["uid"] for row in meta.get("ownerReferences") or ()),
        taints=tuple(_taint(row) for row in spec.get("taints") or () if row.get("key") and row.get("effect")),
        conditions=tuple(CnrCondition.read(row) for row in status.get("conditions") or () if row.get("type") in OURS),
        entries=tuple(_entry(row) for row in status.get("katalystCustomConfigList") or ()),
        # In either of the two spellings (docs/facts/katalyst-cluster.md#two-spellings).
        reported="resourceAllocatable" in status or "resources" in status,
    )


def _taint(row: Mapping[str, Any]) -> CnrTaint:
    return CnrTaint(key=row["key"], value=row.get("value"), effect=row["effect"], qos_level=row.get("qosLevel"))


def _entry(row: Mapping[str, Any]) -> ConfigEntry:
    return ConfigEntry(
        type=(row.get("configType") or {}).get("resource") or "",
        namespace=row.get("configNamespace") or "default",
        name=row.get("configName") or "",
        hash=row.get("hash") or "",
    )


def companion_change(node: NodeSeen, there: CompanionSeen | None) -> dict[str, Any] | None:
    """The metadata to write so that a Node's companion is as it should be; None: it is."""
    wanted = companion_metadata(node.name, node.uid, node.labels)
    if there is None:
        return wanted
    # By UID: a recreated Node must own its companion itself, or both would be deleted.
    if dict(there.labels) == wanted["labels"] and node.uid in there.owners:
        return None
    # None removes a key in a merge patch; a label that is merely left out would stay.
    dropped = dict.fromkeys(there.labels.keys() - wanted["labels"].keys())
    return {**wanted, "labels": {**wanted["labels"], **dropped}}


def orphans(nodes: Sequence[NodeSeen], companions: Sequence[CompanionSeen]) -> list[CompanionSeen]:
    """Companions of Nodes that are not there, ascending by name."""
    names = {node.name for node in nodes}
    return sorted((one for one in companions if one.name not in names), key=lambda one: one.name)
