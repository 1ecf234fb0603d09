"""The input of a cluster's checks: the API server's documents, as far as it returns them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sublet.doctor.cluster.rights import WEBHOOK, FollowedConfigMap, Right
from sublet.doctor.finding import Known, Unknown

Document = Mapping[str, Any]
Documents = Sequence[Document]
_SLO = "SUBLET_CENTRAL__KUBERNETES__SLO__"
_PROFILES = "SUBLET_CENTRAL__KUBERNETES__WEBHOOK__PROFILES"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """One cluster, as seen by one of its users at one moment."""

    server: str
    """Its address, or how it was looked for."""
    namespace: str
    """Where Sublet is, or is to be."""
    now: datetime
    version: Known[Document]
    """What /version says."""
    may: Known[Mapping[Right, bool]]
    """What this user may."""
    accounts_may: Known[Mapping[str, Mapping[Right, bool]]]
    """What Sublet's ServiceAccounts may, by their names."""
    admission: Known[Mapping[str, frozenset[str]]]
    """Resources of admissionregistration.k8s.io by the version that serves them."""
    kinds: Known[Documents]
    """All CustomResourceDefinitions."""
    policies: Known[frozenset[str]]
    """Names of all ValidatingAdmissionPolicies."""
    own_namespace: Known[Document | None]
    daemon_sets: Known[Documents]
    """DaemonSets of all namespaces."""
    deployments: Known[Documents]
    """Deployments of Sublet's namespace; the StatefulSets below are of it, too."""
    stateful_sets: Known[Documents]
    bus_passwords: Known[Document | None]
    """The Secret that the hub takes its passwords from; None where it is not there."""
    bus_certificate: Known[Document | None]
    """The Secret with the hub's certificate; None where it is not there, or the bus is not encrypted."""
    webhook_certificate: Known[Document | None]
    """The Secret with the webhook's certificate; None where it is not there, or profiles are off."""
    webhook_configuration: Known[Document | None]
    """By which the API server asks about pods, or without profiles about Koordinator's ConfigMap; None as above."""
    webhook_endpoints: Known[Documents]
    """EndpointSlices of the webhook's Service."""
    webhook_answers: Known[bool]
    """Whether a pod that was created as a dry run came back with the webhook's word; False where profiles are off."""
    lease: Known[Document | None]
    """Central's."""
    nodes: Known[Documents]
    node_objects: Known[Documents]
    """All CustomNodeResources."""
    scheduled_by_name: Known[Documents]
    """Pods that name katalyst-scheduler or koord-scheduler."""
    kubelets: Known[Mapping[str, Known[Document]]]
    """Kubelet's running configuration by node; of the first nodes only where there are many."""

    @property
    def installed(self) -> Known[bool]:
        """Whether the agents' DaemonSet is there."""
        if isinstance(self.daemon_sets, Unknown):
            return self.daemon_sets
        return self.workload("DaemonSet", "sublet-node") is not None

    @property
    def profiles(self) -> bool:
        """Whether the chart's webhook is known to be there and to apply colocation profiles."""
        return applies_profiles(self.workload("Deployment", WEBHOOK))

    @property
    def webhook(self) -> bool:
        """Whether the chart's webhook is known to be there, for profiles or for Koordinator's ConfigMap alone."""
        return self.workload("Deployment", WEBHOOK) is not None

    @property
    def slo(self) -> FollowedConfigMap | None:
        """Koordinator's ConfigMap, where central is known to follow it."""
        return followed_config_map(self.workload("Deployment", "sublet-central"))

    def workload(self, kind: str, name: str) -> Document | None:
        """One of Sublet's workloads; None where it is not there, or not known."""
        found = {"DaemonSet": self.daemon_sets, "Deployment": self.deployments, "StatefulSet": self.stateful_sets}[kind]
        if isinstance(found, Unknown):
            return None
        here = (one for one in found if one["metadata"].get("namespace") == self.namespace)
        return next((one for one in here if one["metadata"]["name"] == name), None)


def followed_config_map(central: Document | None) -> FollowedConfigMap | None:
    """What the chart has told central's Deployment to follow; None where it is nothing."""
    told = _environment(central)
    if told.get(f"{_SLO}ENABLED") != "true":
        return None
    return FollowedConfigMap(str(told.get(f"{_SLO}NAMESPACE")), str(told.get(f"{_SLO}NAME")))


def applies_profiles(webhook: Document | None) -> bool:
    """Whether the webhook's Deployment is there, and has not been told to leave pods alone."""
    return webhook is not None and _environment(webhook).get(_PROFILES) != "false"


def _environment(deployment: Document | None) -> dict[Any, Any]:
    spec = ((deployment or {}).get("spec", {}).get("template") or {}).get("spec") or {}
    return {one.get("name"): one.get("value") for part in spec.get("containers") or () for one in part.get("env") or ()}


class ClusterProbe(Protocol):
    """Something that can look at a cluster."""

    async def facts(self) -> ClusterFacts:
        """Everything, without raising: what cannot be had is `Unknown`."""
        ...
