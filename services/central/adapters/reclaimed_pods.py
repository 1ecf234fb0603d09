"""Reads lost nodes' reclaimed pods from the API server itself, because a mirror may be behind."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.central.core.objects.nodes import ready
from services.central.leadership.each_node import EachNode
from shared.contracts.pod import Pod
from shared.core.api_kind import PODS
from shared.core.pods.kube_pod import pod_of
from shared.ports import Clock, Objects


class KubeReclaimedPods:
    """Of the few nodes that may lose some; `agent_labels` are those of the agents' pods."""

    def __init__(self, objects: Objects, clock: Clock, agent_labels: Mapping[str, str]) -> None:
        self._objects, self._agent_labels = objects, agent_labels
        self._listing = EachNode(clock, "list pods")
        self._pods: dict[str, list[Pod]] = {}
        self._agents: set[str] = set()

    @property
    def failures(self) -> Mapping[str, str]:
        """Why the pods of a node could not be read, by node."""
        return self._listing.failures

    async def read(self, nodes: Sequence[str]) -> None:
        """Read the reclaimed pods of these nodes, and forget all others; a node that cannot be read has no known
        pods.

        Raises:
            Unavailable: the API server is away, or another one leads.
        """
        # Cleared first: if a node's list fails, its pods are unknown, and none of them is evicted.
        self._pods, self._agents = {}, set()
        self._listing.retain(nodes)
        await self._listing.each(nodes, self._read_one)

    async def _read_one(self, node: str) -> None:
        documents = await self._objects.list(PODS, fields=f"spec.nodeName={node}")
        if any(self._is_agent(document) and ready(document) for document in documents):
            self._agents.add(node)
        pods = [pod for document in documents if (pod := pod_of(document)) is not None]
        self._pods[node] = [p for p in pods if p.qos == "reclaimed_cores" and p.phase in ("Pending", "Running")]

    def _is_agent(self, document: Mapping[str, Any]) -> bool:
        labels = document["metadata"].get("labels") or {}
        return all(labels.get(key) == value for key, value in self._agent_labels.items())

    def agent_lives(self, node: str) -> bool:
        """Whether an agent's pod was ready there when the pods were read."""
        return node in self._agents

    def staying(self, node: str) -> list[Pod]:
        """Those that are not on their way out."""
        return [pod for pod in self._pods.get(node, ()) if not pod.terminating]

    def under_way(self, node: str) -> list[str]:
        """Keys of those that are."""
        return [pod.key for pod in self._pods.get(node, ()) if pod.terminating]
