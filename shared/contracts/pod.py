"""A pod as the node's services see it, whatever the substrate: identity, QoS class, requests and limits."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from shared.contracts.envelope import Bytes, MessagePart, Millis
from shared.contracts.ids import ObjectName, PodUid

QosClass = Literal["shared_cores", "dedicated_cores", "reclaimed_cores", "system_cores"]
KoordQos = Literal["LSE", "LSR", "LS", "BE", "SYSTEM"]
"""Koordinator's QoS classes."""
PriorityClass = Literal["koord-prod", "koord-mid", "koord-batch", "koord-free"]
"""Koordinator's priority classes."""
KubeQos = Literal["Guaranteed", "Burstable", "BestEffort"]
Owner = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]{1,63}/[^/\s]{1,253}$")]
"""Kind/name of a controller."""

RECLAIMED_CPU = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
RECLAIMED_MEMORY = "resource.katalyst.kubewharf.io/reclaimed_memory"
TUTORIAL_RECLAIMED_CPU = "katalyst.kubewharf.io/reclaimed_millicpu"
TUTORIAL_RECLAIMED_MEMORY = "katalyst.kubewharf.io/reclaimed_memory"
ALIASES = {TUTORIAL_RECLAIMED_CPU: RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY: RECLAIMED_MEMORY}
"""The tutorial's older names and today's are one resource (docs/facts/katalyst-cluster.md#two-spellings)."""

BATCH_CPU = "kubernetes.io/batch-cpu"
BATCH_MEMORY = "kubernetes.io/batch-memory"
FIRST_BATCH_CPU = "koordinator.sh/batch-cpu"
FIRST_BATCH_MEMORY = "koordinator.sh/batch-memory"
BATCH_ALIASES = {FIRST_BATCH_CPU: BATCH_CPU, FIRST_BATCH_MEMORY: BATCH_MEMORY}
"""Koordinator's names, of its first releases and of today, are one resource too
(docs/facts/koordinator.md#batch-resources)."""

MID_CPU = "kubernetes.io/mid-cpu"
MID_MEMORY = "kubernetes.io/mid-memory"
"""Koordinator's resources for pods of class mid, in milli-cores and bytes; they have one spelling each."""


def canonical_resource(name: str) -> str:
    """Today's name of a resource: the two spellings of the reclaimed resources are one."""
    return ALIASES.get(name, name)


class Container(MessagePart):
    """One container. CPU in milli-cores and memory in bytes; 0 means "not said". Reclaimed amounts count as well."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
    cpu_request_millis: Millis = 0
    cpu_limit_millis: Millis = 0
    memory_request_bytes: Bytes = 0
    memory_limit_bytes: Bytes = 0
    id: Annotated[str, Field(pattern=r"^$|^(containerd|cri-o|docker)://[0-9a-f]{12,64}$")] = ""
    """The container runtime's name of it, with the runtime's; empty on a host without one."""


class Pod(MessagePart):
    """One pod. For reclaimed_cores the container figures are amounts of the reclaimed resources."""

    uid: PodUid
    namespace: ObjectName = "default"
    name: ObjectName
    qos: QosClass = "shared_cores"
    kube_qos: KubeQos | None = None
    """Kubernetes' own class, as kubelet says it; None where there is no kubelet."""
    priority: int = 0
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    """Those that start before the containers, in their order; a sidecar, which stays, is one of `containers` too."""
    as_one: bool = False
    """The one entry of `containers` stands for all of them, because there are too many: its cgroup is the pod's own."""
    overhead_memory_bytes: Bytes = 0
    """What the container runtime needs beside the containers (`spec.overhead`), as for a virtual machine."""
    annotations: dict[str, str] = {}
    """Of an API object only those that somebody reads, and of bounded length; labels likewise."""
    labels: dict[str, str] = {}
    unread: tuple[str, ...] = ()
    """What the pod says and is left out here because it is too long, or no pod can hold it, in words."""
    cpu_normalization_ratio: Annotated[float, Field(ge=1, le=10)] = 1.0
    """How many times as fast the node's CPU is as the one that the pod's amounts of batch-cpu mean."""
    grace_s: Annotated[float, Field(ge=0, le=3600)] = 30.0
    phase: Literal["Pending", "Running", "Succeeded", "Failed"] = "Running"
    terminating: bool = False
    owner: Owner | None = None
    """Kind/name of the controlling ownerReference, in the pod's own namespace; None: the pod stands alone."""

    @property
    def key(self) -> str:
        """namespace/name, the last word of every ordering (docs/facts/safety-rules.md#rule-6-deterministic)."""
        return f"{self.namespace}/{self.name}"

    @property
    def owner_key(self) -> str | None:
        """namespace/Kind/name: whose pod it is, on the whole node; None: nobody's."""
        return None if self.owner is None else f"{self.namespace}/{self.owner}"

    @property
    def owner_kind(self) -> str | None:
        """The owner's kind."""
        return None if self.owner is None else self.owner.partition("/")[0]

    @property
    def cpu_request_millis(self) -> int:
        """Sum over the containers."""
        return sum(c.cpu_request_millis for c in self.containers)

    @property
    def memory_request_bytes(self) -> int:
        """Sum over the containers."""
        return sum(c.memory_request_bytes for c in self.containers)
