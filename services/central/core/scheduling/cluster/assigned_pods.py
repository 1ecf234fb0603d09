"""The pods of each node, with sums that follow every change, so that no answer adds up 250 000 pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.central.core.scheduling.cluster.pod_asks import PodSeen


@dataclass
class PodsOfNode:
    """Those that hold room on one node, by UID, and what they take of it together."""

    pods: dict[str, PodSeen] = field(default_factory=dict)
    reclaimed_millis: int = 0
    reclaimed_bytes: int = 0
    cpu_millis: int = 0
    """CPU of the node itself that the other pods request."""
    own_cpus: int = 0
    """Of that, whole CPUs that kubelet gives to single pods where it binds."""

    def add(self, pod: PodSeen, sign: int) -> None:
        """Count a pod that came (1), or no longer one that left (-1)."""
        if pod.ask.qos == "reclaimed_cores":
            self.reclaimed_millis += sign * pod.ask.cpu_request_millis
            self.reclaimed_bytes += sign * pod.ask.memory_request_bytes
        else:
            self.cpu_millis += sign * pod.ask.cpu_request_millis
            self.own_cpus += sign * pod.ask.own_cpus


@dataclass
class AssignedPods:
    """An index of a mirror of pods, notified of each change."""

    _nodes: dict[str, PodsOfNode] = field(default_factory=dict)
    _by_uid: dict[str, PodSeen] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._by_uid)

    def put(self, uid: str, pod: PodSeen | None) -> set[str]:
        """Record a pod, or None if it holds nothing any more; return the affected nodes."""
        before = self._by_uid.pop(uid, None)
        if before is not None:
            there = self._nodes[before.node]
            there.add(before, -1)
            del there.pods[uid]
            if not there.pods:
                del self._nodes[before.node]
        if pod is not None:
            self._by_uid[uid] = pod
            there = self._nodes.setdefault(pod.node, PodsOfNode())
            there.add(pod, 1)
            there.pods[uid] = pod
        return {one.node for one in (before, pod) if one is not None}

    def of(self, node: str) -> PodsOfNode:
        """Those of one node."""
        return self._nodes.get(node) or PodsOfNode()

    @property
    def nodes(self) -> Mapping[str, PodsOfNode]:
        """Those of all nodes that have any."""
        return self._nodes
