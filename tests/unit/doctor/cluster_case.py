"""A cluster with Sublet in it in which nothing is wrong, as its API server's documents."""

import base64
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sublet.doctor.cluster.api import POLICIES
from sublet.doctor.cluster.facts import ClusterFacts
from sublet.doctor.cluster.rights import (
    BIND,
    ESCALATE,
    FollowedConfigMap,
    accounts,
    of_account,
    to_hand_on,
    to_install,
)

K8S = Path(__file__).parents[3] / "deploy/k8s"
SYSTEM = "sublet-system"
NOW = datetime(2026, 11, 22, 1, 0, tzinfo=UTC)
LONG_AGO, JUST_NOW = "2026-11-22T00:30:00Z", "2026-11-22T00:59:59.000000Z"
Document = dict[str, Any]


@cache
def kinds() -> list[Document]:
    """The kinds of deploy/k8s/crds."""
    found = (yaml.safe_load(path.read_text()) for path in sorted((K8S / "crds").glob("*.yaml")))
    return [one for one in found if one["kind"] == "CustomResourceDefinition"]


def named(name: str, namespace: str = "", **parts: Any) -> Document:
    """An object."""
    labels = parts.pop("labels", {})
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "creationTimestamp": LONG_AGO},
        **parts,
    }


def workload(name: str, replicas: int = 1, ready: int = 1) -> Document:
    """A Deployment or StatefulSet of Sublet's."""
    return named(name, SYSTEM, spec={"replicas": replicas}, status={"readyReplicas": ready})


SLO = FollowedConfigMap("koordinator-system", "slo-controller-config")


def central(ready: int = 2, slo: str = "true") -> Document:
    """Central's Deployment, as far as it says which ConfigMap is followed."""
    found = workload("sublet-central", 2, ready)
    told = {"ENABLED": slo, "NAMESPACE": SLO.namespace, "NAME": SLO.name}
    env = [{"name": f"SUBLET_CENTRAL__KUBERNETES__SLO__{name}", "value": value} for name, value in told.items()]
    found["spec"]["template"] = {"spec": {"containers": [{"name": "central", "env": env}]}}
    return found


def webhook(profiles: str = "true", ready: int = 2) -> Document:
    """The webhook's Deployment, as far as it says whether it applies profiles."""
    found = workload("sublet-webhook", 2, ready)
    env = [{"name": "SUBLET_CENTRAL__KUBERNETES__WEBHOOK__PROFILES", "value": profiles}]
    found["spec"]["template"] = {"spec": {"containers": [{"name": "webhook", "env": env}]}}
    return found


def hub() -> Document:
    """The bus, as far as it names its Secrets and its volumes."""
    found = workload("sublet-bus")
    found["spec"]["volumeClaimTemplates"] = [named("store", SYSTEM)]
    password = {"name": "CENTRAL_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "sublet-bus", "key": "central"}}}
    found["spec"]["template"] = {
        "spec": {
            "containers": [{"name": "bus", "env": [password]}],
            "volumes": [{"name": "tls", "secret": {"secretName": "sublet-bus-tls"}}],
        }
    }
    return found


def agents(wanted: int = 1, ready: int = 1) -> Document:
    """The agents' DaemonSet."""
    return named("sublet-node", SYSTEM, status={"desiredNumberScheduled": wanted, "numberReady": ready})


def node(name: str = "n1", version: str = "v1.33.1", writer: str = "", system: str = "linux") -> Document:
    """A Node, and who wrote reclaimed resources to it."""
    fields: Document = {"f:status": {"f:allocatable": {"f:resource.katalyst.kubewharf.io/reclaimed_millicpu": {}}}}
    found = named(name, status={"nodeInfo": {"operatingSystem": system, "kubeletVersion": version}})
    found["metadata"]["managedFields"] = [
        {"manager": "kubelet", "fieldsV1": {"f:status": {"f:allocatable": {"f:cpu": {}}}}}
    ]
    if writer:
        found["metadata"]["managedFields"].append({"manager": writer, "fieldsV1": fields})
    return found


def node_object(name: str = "n1", ready: str = "True", message: str = "") -> Document:
    """A CustomNodeResource."""
    return named(name, status={"conditions": [{"type": "AgentReady", "status": ready, "message": message}]})


def pod(
    name: str, bound: str = "", made: str = LONG_AGO, looked_at: bool = False, scheduler: str = "katalyst-scheduler"
) -> Document:
    """A pod that names a scheduler."""
    spec = {"schedulerName": scheduler} | ({"nodeName": bound} if bound else {})
    found = named(name, "default", spec=spec, status={"phase": "Pending"})
    found["metadata"]["creationTimestamp"] = made
    if looked_at:
        found["status"]["conditions"] = [{"type": "PodScheduled", "status": "False"}]
    return found


def asking(name: str, resource: str) -> Document:
    """A pod that a scheduler has looked at, and that asks for a resource."""
    found = pod(name, looked_at=True, scheduler="koord-scheduler")
    found["spec"]["containers"] = [{"resources": {"requests": {resource: "500"}}}]
    return found


def namespace(**labels: str) -> Document:
    """Sublet's namespace."""
    spelled = {"system_cores": "sublet.io/system-cores", "security": "pod-security.kubernetes.io/enforce"}
    return named(SYSTEM, labels={spelled[key]: value for key, value in labels.items()})


def secret(renew_at: str = "", **held: str) -> Document:
    """A Secret of the bus."""
    found = named(
        "sublet-bus", SYSTEM, data={key: base64.b64encode(text.encode()).decode() for key, text in held.items()}
    )
    found["metadata"]["annotations"] = {"sublet.io/renew-at": renew_at} if renew_at else {}
    return found


def webhook_secret(authorities: str) -> Document:
    """The Secret of the webhook's certificate."""
    return named("sublet-webhook-tls", SYSTEM, data={"ca.crt": base64.b64encode(authorities.encode()).decode()})


def webhook_trusting(authorities: str) -> Document:
    """The configuration by which the API server asks about pods."""
    bundle = base64.b64encode(authorities.encode()).decode()
    return named("sublet-pod-profiles", webhooks=[{"clientConfig": {"caBundle": bundle}}])


INSTALL, HAND_ON = (rights(SYSTEM, profiles=True, slo=SLO) for rights in (to_install, to_hand_on))
MAY = dict.fromkeys([*INSTALL, *HAND_ON, ESCALATE, BIND], True)
ACCOUNTS = accounts(profiles=True, slo=SLO)
AUTHORITY = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n"
GOOD = ClusterFacts(
    server="test",
    namespace=SYSTEM,
    now=NOW,
    version={"gitVersion": "v1.35.4"},
    may=MAY,
    accounts_may={
        account: dict.fromkeys(of_account(account, SYSTEM, profiles=True, slo=SLO), True) for account in ACCOUNTS
    },
    admission={"v1": frozenset({"validatingadmissionpolicies"}), "v1beta1": frozenset({"mutatingadmissionpolicies"})},
    kinds=kinds(),
    policies=frozenset(POLICIES),
    own_namespace=namespace(system_cores="allowed", security="privileged"),
    daemon_sets=[agents(), named("kube-proxy", "kube-system")],
    deployments=[
        central(),
        workload("sublet-events"),
        workload("sublet-scheduler"),
        webhook(),
    ],
    stateful_sets=[hub()],
    bus_passwords=secret(central="p" * 32, bridge="q" * 32),
    bus_certificate=secret(renew_at="1800000000"),
    webhook_certificate=webhook_secret(AUTHORITY),
    webhook_configuration=webhook_trusting("-----BEGIN CERTIFICATE-----\nold\n-----END CERTIFICATE-----\n" + AUTHORITY),
    webhook_endpoints=[named("sublet-webhook-1", SYSTEM, endpoints=[{}, {"conditions": {"ready": True}}])],
    webhook_answers=True,
    lease=named("sublet-central", SYSTEM, spec={"holderIdentity": "central-1", "renewTime": JUST_NOW}),
    nodes=[node(writer="sublet-reporter")],
    node_objects=[node_object()],
    scheduled_by_name=[pod("placed", bound="n1")],
    kubelets={"n1": {"cpuManagerPolicy": "none", "cgroupDriver": "systemd"}},
)
