"""Kinds of objects of the Kubernetes API, and their paths."""

from dataclasses import dataclass, replace

NODE_GROUP = "node.katalyst.kubewharf.io"
CONFIG_GROUP = "config.katalyst.kubewharf.io"


@dataclass(frozen=True, slots=True)
class ApiKind:
    """A kind by its group ("" is the core), version and the plural that its paths carry."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = False
    status: bool = True
    """Whether its status is a subresource: then neither can be written with the other."""
    subresource: str = ""
    """A part of an object that is written separately, such as `resize`; "": the object."""

    @property
    def whole(self) -> "ApiKind":
        """The kind of the object that a subresource is of."""
        return replace(self, subresource="") if self.subresource else self

    @property
    def api_version(self) -> str:
        """As documents carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def head(self) -> dict[str, str]:
        """Return the first fields of every document of this kind."""
        return {"apiVersion": self.api_version, "kind": self.kind}

    def collection(self, namespace: str = "") -> str:
        """Path of all objects, or of those of one namespace."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"

    def path(self, name: str, namespace: str = "") -> str:
        """Path of one object, or of its subresource."""
        whole = f"{self.collection(namespace if self.namespaced else '')}/{name}"
        return f"{whole}/{self.subresource}" if self.subresource else whole


NODES = ApiKind("", "v1", "Node", "nodes")
CONFIG_MAPS = ApiKind("", "v1", "ConfigMap", "configmaps", namespaced=True, status=False)
PODS = ApiKind("", "v1", "Pod", "pods", namespaced=True)
POD_RESIZES = replace(PODS, subresource="resize")
"""Requests and limits of a pod that runs, by themselves (docs/facts/kubernetes.md#resizing-pods)."""
LEASES = ApiKind("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True, status=False)
CNRS = ApiKind(NODE_GROUP, "v1alpha1", "CustomNodeResource", "customnoderesources")
CNCS = ApiKind(CONFIG_GROUP, "v1alpha1", "CustomNodeConfig", "customnodeconfigs")
KCCS = ApiKind(CONFIG_GROUP, "v1alpha1", "KatalystCustomConfig", "katalystcustomconfigs", namespaced=True)
EVICTION_CONFIGS = ApiKind(CONFIG_GROUP, "v1alpha1", "EvictionConfiguration", "evictionconfigurations", namespaced=True)
ADMIN_QOS_CONFIGS = ApiKind(
    CONFIG_GROUP, "v1alpha1", "AdminQoSConfiguration", "adminqosconfigurations", namespaced=True
)
NODE_SLOS = ApiKind("slo.koordinator.sh", "v1alpha1", "NodeSLO", "nodeslos")
NODE_METRICS = ApiKind("slo.koordinator.sh", "v1alpha1", "NodeMetric", "nodemetrics")
