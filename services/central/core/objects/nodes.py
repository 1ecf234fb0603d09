"""Nodes, their leases and their agents' pods: of 10 000 nodes as much as decisions need."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.central.core.lost_nodes.guards import NodePlace
from shared.contracts.cluster.pauses import POOL_LABEL
from shared.core.pods.extended_resources import own_names

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
    """Readiness by Kubernetes' own node life cycle; None: unknown."""
    offered: frozenset[str]
    """Names of reclaimed resources of which the Node offers more than zero."""

    @property
    def place(self) -> NodePlace:
        """Its pool and zone by its labels."""
        return NodePlace(self.labels.get(POOL_LABEL), self.labels.get(ZONE_LABEL))


def node_of(document: Mapping[str, Any]) -> NodeSeen:
    """A Node of its document."""
    meta, status = document["metadata"], document.get("status") or {}
    conditions = {row.get("type"): row.get("status") for row in status.get("conditions") or ()}
    allocatable = status.get("allocatable") or {}
    return NodeSeen(
        name=meta["name"],
        uid=meta["uid"],
        labels=dict(meta.get("labels") or {}),
        ready=None if "Ready" not in conditions else conditions["Ready"] == "True",
        offered=frozenset(name for name in own_names(document) if str(allocatable.get(name) or "0") != "0"),
    )


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """A lease of a node's kubelet; `renewed` is written by the kubelet's clock, so only a change of it counts."""

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
    # A pod that is being deleted is still Ready during its grace period, and gone right after.
    return conditions.get("Ready") == "True" and not pod["metadata"].get("deletionTimestamp")


def utc(moment: datetime) -> str:
    """A moment as Kubernetes writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
