"""Agents without a node as fixtures: two Nodes on paper, and logins as their agents and central have them."""

import asyncio
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kube_cluster import IN_FORCE_LIMIT_S, K8S, SYSTEM

from shared.adapters.kube.client import Kube, KubeError

if TYPE_CHECKING:
    from kube_rig.cluster import Cluster

Document = dict[str, Any]
HAS = {"cpu": "48", "memory": "192Gi"}
"""What each of the Nodes has."""
POD = {"apiVersion": "v1", "kind": "Pod"}
EXTENDER = ("scheduling/rights.yaml", "scheduling/nodes.yaml")
CENTRAL = ("ServiceAccount/sublet-central", "ClusterRole/sublet-central", "ClusterRoleBinding/sublet-central")


@pytest.fixture(scope="module")
def nodes(guarded: "Cluster") -> Iterator[tuple[str, str]]:
    """Two nodes without a kubelet, with a pod on each."""
    names = ("paper-1", "paper-2")
    for name in names:
        held = {"key": "node.example/other", "effect": "NoSchedule"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": [held]}}
        guarded.apply(node, {**POD, "metadata": {"name": f"on-{name}", "namespace": "default"}, "spec": bound(name)})
        status = {"status": {"capacity": HAS, "allocatable": HAS}}
        guarded.kubectl("patch", "node", name, "--type=merge", "--subresource=status", "--patch", json.dumps(status))
    yield names
    for name in names:
        guarded.kubectl("delete", "pod", f"on-{name}", "--grace-period=0", "--force", "--ignore-not-found")
        guarded.kubectl("delete", "node", name, "--ignore-not-found")


def bound(node: str) -> Document:
    """The spec of a pod that is on a node."""
    container = {"name": "main", "image": "none.example/none"}
    return {
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
        "nodeName": node,
        "tolerations": [{"operator": "Exists"}],
    }


def login(cluster: "Cluster", folder: Path, account: str, *words: str) -> Path:
    """A kubeconfig with a fresh token of a ServiceAccount."""
    token = cluster.kubectl("create", "token", account, "--namespace", SYSTEM, *words).strip()
    document = yaml.safe_load(cluster.admin.read_text())
    document["users"][0]["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture(scope="module")
def agent(guarded: "Cluster", nodes: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The agent of the first node; its token is bound to its pod, as kubelet has them made."""
    about = {"name": "agent-1", "namespace": SYSTEM}
    guarded.apply({**POD, "metadata": about, "spec": bound(nodes[0]) | {"serviceAccountName": "sublet-node"}})
    bound_to = ("--bound-object-kind=Pod", f"--bound-object-name={about['name']}")
    yield login(guarded, tmp_path_factory.mktemp("agent"), "sublet-node", *bound_to)
    guarded.kubectl("delete", "pod", about["name"], "--namespace", SYSTEM, "--grace-period=0", "--force")


@pytest.fixture(scope="module")
def nobodys(guarded: "Cluster", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A token of the agents' that is bound to nothing."""
    return login(guarded, tmp_path_factory.mktemp("nobodys"), "sublet-node")


@pytest.fixture(scope="module")
def central(guarded: "Cluster", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Central's login."""
    rendered = yaml.safe_load_all((K8S / "base/sublet.yaml").read_text())
    wanted = [d for d in rendered if f"{d['kind']}/{d['metadata']['name']}" in CENTRAL]
    there = any(one["metadata"]["name"] == "sublet-central" for one in guarded.get("clusterroles")["items"])
    if not there:
        guarded.apply(*wanted)
    yield login(guarded, tmp_path_factory.mktemp("central"), "sublet-central")
    if not there:
        guarded.kubectl("delete", "--filename", "-", given=yaml.safe_dump_all(wanted))


def rendered(cluster: "Cluster", switch: str, *templates: str) -> list[Document]:
    """What some templates of the chart give with a switch on."""
    chosen = [word for name in templates for word in ("--show-only", f"templates/{name}")]
    words = ("template", "sublet", str(K8S / "chart"), "--namespace", SYSTEM, "--set", f"{switch}=true", *chosen)
    return [one for one in yaml.safe_load_all(cluster.helm(*words, "--kube-version", "1.30.0")) if one]


def wait_labels(cluster: "Cluster", who: Path, node: str, label: str, *, taken: bool) -> None:
    """Wait until the API server takes or refuses a label of somebody's, as a new policy says."""
    from rig_parts import until

    values = count()

    def told() -> bool:
        change = {"metadata": {"labels": {label: str(next(values))}}}
        return bool(asyncio.run(patched(who, node, change))) is not taken

    until(told, IN_FORCE_LIMIT_S, "the policy in force")
    cluster.kubectl("label", "node", node, f"{label}-")


@pytest.fixture(scope="module")
def extender(guarded: "Cluster", nodes: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The login of the scheduler's extender, with its rights and what bounds them."""
    wanted = rendered(guarded, "scheduling.enabled", *EXTENDER)
    guarded.apply(*wanted)
    who = login(guarded, tmp_path_factory.mktemp("extender"), "sublet-extender")
    wait_labels(guarded, who, nodes[0], "tried", taken=False)
    yield who
    guarded.kubectl("delete", "--filename", "-", given=yaml.safe_dump_all(wanted))


@pytest.fixture(scope="module")
def tidal(guarded: "Cluster", nodes: tuple[str, str], central: Path) -> Iterator[Path]:
    """Central's login where tide pools are on."""
    guarded.apply(*rendered(guarded, "tide.enabled", "admission/node-agent.yaml"))
    wait_labels(guarded, central, nodes[0], "tide.katalyst.kubewharf.io/tried", taken=True)
    yield central
    guarded.apply(*rendered(guarded, "admission.enabled", "admission/node-agent.yaml"))


async def patched(who: Path, node: str, change: Document, part: str = "") -> str:
    """What the agents' own client is told; "" where its change is taken."""
    kube = Kube(who)
    try:
        await kube.merge(f"/api/v1/nodes/{node}{part}", change, manager="sublet-reporter")
    except KubeError as refusal:
        return str(refusal)
    finally:
        await kube.close()
    return ""
