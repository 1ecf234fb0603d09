"""Which workload a recorded pod belongs to, and what it asks for, as the rules of recommendation have them."""

import re
from dataclasses import dataclass

from services.central.core.recommendation.ledger import WorkloadKey
from services.central.core.recommendation.objects.workloads import ContainerNeeds, DeploymentSeen, WorkloadPod
from services.central.core.recommendation.oom import OomKill
from shared.contracts.pod import Container, Pod

DEPLOYMENT, REPLICA_SET, POD = "Deployment", "ReplicaSet", "Pod"
_HASH = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{1,10}")
"""What a Deployment puts behind its name for a ReplicaSet (docs/facts/kubernetes.md#names-of-replicasets)."""


@dataclass(frozen=True, slots=True, order=True)
class RecordedWorkload:
    """A pod's owner; the pod itself where it has none."""

    namespace: str
    kind: str
    name: str

    @classmethod
    def of(cls, pod: Pod) -> "RecordedWorkload":
        """A recording knows a pod's own owner: the Deployment is known by the name of its ReplicaSet."""
        kind, _, name = pod.owner.partition("/") if pod.owner else (POD, "", pod.name)
        deployment, _, mark = name.rpartition("-")
        if kind == REPLICA_SET and deployment and _HASH.fullmatch(mark):
            return cls(pod.namespace, DEPLOYMENT, deployment)
        return cls(pod.namespace, kind, name)

    @property
    def uid(self) -> str:
        """Stands for that of a ResourceRecommend."""
        return f"{self.namespace}/{self.kind}/{self.name}"

    @property
    def key(self) -> WorkloadKey:
        """Two kinds may have the same name."""
        return (self.namespace, self.name if self.kind == DEPLOYMENT else f"{self.kind}/{self.name}")


def as_deployment(workload: RecordedWorkload, pod: Pod) -> DeploymentSeen:
    """The workload with the containers of one of its pods, which stands for its template."""
    return DeploymentSeen(*workload.key, _needs(pod))


def as_workload_pod(workload: RecordedWorkload, node: str, pod: Pod, kills: tuple[OomKill, ...] = ()) -> WorkloadPod:
    """The pod as the API server would have told of it."""
    namespace, name = workload.key
    return WorkloadPod(pod.uid, namespace, pod.name, name, node, "", running=True, containers=_needs(pod), kills=kills)


def _needs(pod: Pod) -> dict[str, ContainerNeeds]:
    return {one.name: ContainerNeeds(*_amounts(one)) for one in pod.containers}


def _amounts(container: Container) -> tuple[dict[str, int], dict[str, int]]:
    """Requests and limits; 0 is what is not said."""
    requests = {"cpu": container.cpu_request_millis, "memory": container.memory_request_bytes}
    limits = {"cpu": container.cpu_limit_millis, "memory": container.memory_limit_bytes}
    return {name: value for name, value in requests.items() if value}, {n: v for n, v in limits.items() if v}
