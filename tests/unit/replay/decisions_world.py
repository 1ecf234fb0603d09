"""A small cluster for the tests of recordings and their decisions: objects, what nodes say, what was decided."""

import io
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from services.central.settings import KubernetesSettings
from shared.contracts.cluster.decision import Decided, Decision
from shared.contracts.cluster.figures import FiguredContainers, FiguredPods, PodFigures
from shared.contracts.cluster.offer import NodeOffer, ResourceAmounts
from shared.contracts.envelope import Message
from shared.contracts.pod import RECLAIMED_CPU
from sublet.replay.decisions.reading import ClusterRecording, read_cluster_recording
from sublet.replay.decisions.recording import ClusterWriter
from sublet.replay.decisions.run import DecisionsOutcome, replay_decisions

BEGAN = datetime(2026, 1, 30, 12, 0, tzinfo=UTC)
MIB = 1 << 20
SOON = KubernetesSettings.model_validate({"recommendation": {"min_history_s": 60}})


class ClusterStory:
    """Writes a recording, step by step."""

    def __init__(self) -> None:
        self._out = io.BytesIO()
        self.writer = ClusterWriter(self._out, BEGAN)
        self.at_s = 0.0
        self._seq = 0

    def wait(self, seconds: float) -> None:
        self.at_s += seconds

    def see(self, kind: str, name: str, document: Mapping[str, Any] | None, namespace: str = "") -> None:
        uid = uid_of(kind, name)
        meta = {"name": name, "uid": uid} | ({"namespace": namespace} if namespace else {})
        whole = None
        if document is not None:
            whole = {**document, "metadata": {**meta, **document.get("metadata", {})}}
        self.writer.see(self.at_s, kind, uid, whole)

    def hear(self, model: type[Message], node: str = "node1", /, **fields: Any) -> None:
        self._seq += 1
        envelope = {"node": node, "boot_id": "0" * 16, "seq": self._seq, "sent_at": self.now}
        self.writer.hear(self.at_s, model.model_validate({**envelope, **fields}))

    def decided(self, decided: Decided) -> None:
        self.hear(Decision, "central", **decided.model_dump())

    @property
    def now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.at_s)

    def offer(self, cpu_millis: int, node: str = "node1") -> None:
        self.hear(NodeOffer, node, reclaimed=ResourceAmounts(cpu_millis=cpu_millis, memory_bytes=1 << 30))

    def uses(self, cores: float, mib: int) -> None:
        self.hear(
            PodFigures,
            measured_at=self.now,
            period_s=15.0,
            pods=FiguredPods(
                uids=(uid_of("Pod", "web-5d4b7-abcde"),), namespaces=("shop",), names=("web-5d4b7-abcde",)
            ),
            containers=FiguredContainers(
                pods=(0,),
                names=("main",),
                series={"container_cpu_usage": (cores,), "container_memory_usage": (mib * MIB,)},
            ),
        )

    def close(self) -> bytes:
        self.writer.close()
        return self._out.getvalue()


def uid_of(kind: str, name: str) -> str:
    return f"{kind}-{name}".encode().hex()[:60]


def workload(story: ClusterStory, status: Mapping[str, Any] | None = None) -> None:
    """A Deployment of one pod with a ResourceRecommend."""
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2", "memory": "512Mi"}}}]}
    story.see("Deployment", "web", {"spec": {"template": {"spec": spec}}}, "shop")
    owner = {"kind": "ReplicaSet", "name": "web-5d4b7", "controller": True}
    meta = {"labels": {"pod-template-hash": "5d4b7"}, "ownerReferences": [owner]}
    pod = {"metadata": meta, "spec": {**spec, "nodeName": "node1"}, "status": {"phase": "Running", **(status or {})}}
    story.see("Pod", "web-5d4b7-abcde", pod, "shop")
    resources = [{"resourceName": name, "bufferPercent": 30} for name in ("cpu", "memory")]
    policies = [{"containerName": "*", "controlledResourcesPolicies": resources}]
    wanted = {"targetRef": {"kind": "Deployment", "name": "web"}, "resourcePolicy": {"containerPolicies": policies}}
    story.see("ResourceRecommend", "web", {"spec": wanted, "metadata": {"generation": 1}}, "shop")


def batch_pod(cpu_millis: int) -> dict[str, Any]:
    requests = {RECLAIMED_CPU: str(cpu_millis)}
    meta = {"annotations": {"katalyst.kubewharf.io/qos_level": "reclaimed_cores"}}
    return {
        "metadata": meta,
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}]},
        "status": {"phase": "Pending"},
    }


def read(data: bytes) -> ClusterRecording:
    return read_cluster_recording("a.gz", io.BytesIO(data))


def anew(data: bytes, settings: KubernetesSettings = SOON) -> DecisionsOutcome:
    return replay_decisions(read(data), settings)
