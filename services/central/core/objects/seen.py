"""What central keeps of the API server's objects: of 10 000 nodes as much as its decisions need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.central.core.lost_nodes.agent_standing import OURS, CnrCondition
from services.central.core.lost_nodes.guards import Place
from services.central.core.lost_nodes.lost_node import CnrTaint
from services.central.core.objects.cnc import ConfigEntry
from services.central.core.objects.companion import companion_metadata
from shared.core.pods.extended_resources import OTHER_NAME

POOL_LABEL = "node.kubernetes.io/pool"
NODE_LEASES = "kube-node-lease"
"""The namespace of the nodes' leases."""
ZONE_LABEL = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A Node."""

    name: str
    uid: str
    labels: Mapping[str, str]
    ready: bool | None
    """As Kubernetes' own node life cycle says; None: it says nothing."""
    sold: frozenset[str]
    """Names of reclaimed resources of which the Node offers more than nothing."""

    @property
    def place(self) -> Place:
        """Its pool and zone by its labels."""
        return Place(self.labels.get(POOL_LABEL), self.labels.get(ZONE_LABEL))


@dataclass(frozen=True, slots=True)
class CompanionSeen:
    """A CNR with its taints and what central said in it, or a CNC with its entries."""

    name: str
    uid: str
    version: str
    labels: Mapping[str, str]
    owners: frozenset[str]
    """UIDs of its owners."""
    taints: tuple[CnrTaint, ...] = ()
    conditions: tuple[CnrCondition, ...] = ()
    """Those that central writes."""
    entries: tuple[ConfigEntry, ...] = ()
    reported: bool = False
    """Whether an agent has ever said of a CNR what its node offers."""


def node_of(document: Mapping[str, Any]) -> NodeSeen:
    """A Node of its document."""
    meta, status = document["metadata"], document.get("status") or {}
    conditions = {row.get("type"): row.get("status") for row in status.get("conditions") or ()}
    offered = status.get("allocatable") or {}
    return NodeSeen(
        name=meta["name"],
        uid=meta["uid"],
        labels=dict(meta.get("labels") or {}),
        ready=None if "Ready" not in conditions else conditions["Ready"] == "True",
        sold=frozenset(name for name in OTHER_NAME if str(offered.get(name) or "0") != "0"),
    )


def companion_of(document: Mapping[str, Any]) -> CompanionSeen:
    """A CNR or CNC of its document; what cannot be read of taints and entries is left out."""
    meta, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    return CompanionSeen(
        name=meta["name"],
        uid=meta["uid"],
        version=meta["resourceVersion"],
        labels=dict(meta.get("labels") or {}),
        owners=frozenset(row["uid"] for row in meta.get("ownerReferences") or ()),
        taints=tuple(_taint(row) for row in spec.get("taints") or () if row.get("key") and row.get("effect")),
        conditions=tuple(CnrCondition.read(row) for row in status.get("conditions") or () if row.get("type") in OURS),
        entries=tuple(_entry(row) for row in status.get("katalystCustomConfigList") or ()),
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
    if dict(there.labels) == wanted["labels"] and node.uid in there.owners:
        return None
    dropped = dict.fromkeys(there.labels.keys() - wanted["labels"].keys())
    return {**wanted, "labels": {**wanted["labels"], **dropped}}


def orphans(nodes: Sequence[NodeSeen], companions: Sequence[CompanionSeen]) -> list[CompanionSeen]:
    """Companions of Nodes that are not there, ascending by name."""
    names = {node.name for node in nodes}
    return sorted((one for one in companions if one.name not in names), key=lambda one: one.name)


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """A lease of a node's kubelet; `renewed` is its holder's clock, of which only the change counts."""

    node: str
    renewed: str


def lease_of(document: Mapping[str, Any]) -> LeaseSeen:
    """A node's lease."""
    return LeaseSeen(document["metadata"]["name"], str((document.get("spec") or {}).get("renewTime") or ""))


@dataclass(frozen=True, slots=True)
class AgentSeen:
    """An agent's pod."""

    node: str
    name: str
    ready: bool


def agent_of(document: Mapping[str, Any]) -> AgentSeen | None:
    """An agent's pod; None while it is on no node."""
    node, meta = (document.get("spec") or {}).get("nodeName"), document["metadata"]
    return AgentSeen(node, f"{meta.get('namespace')}/{meta['name']}", ready(document)) if node else None


def ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is ready and stays."""
    conditions = {row.get("type"): row.get("status") for row in (pod.get("status") or {}).get("conditions") or ()}
    return conditions.get("Ready") == "True" and not pod["metadata"].get("deletionTimestamp")


def utc(moment: datetime) -> str:
    """A moment as Kubernetes writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
