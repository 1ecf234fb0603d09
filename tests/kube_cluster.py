"""A cluster of the tests' own as fixtures: control plane and one node, up once for all tests that ask for it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from slow_machines import patience_s

if TYPE_CHECKING:
    from kube_rig.cluster import Cluster

HERE = Path(__file__).parent
sys.path += [str(HERE / name) for name in ("kubernetes", "compose", "vm", "integration")]  # the rigs


K8S = HERE.parent / "deploy/k8s"
SYSTEM = "sublet-system"
POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
AGENT = ("ServiceAccount/sublet-node", "ClusterRole/sublet-node", "ClusterRoleBinding/sublet-node")
IN_FORCE_LIMIT_S = 60.0


@pytest.fixture(scope="session")
def cluster() -> "Iterator[Cluster]":
    """Ready, with nothing in it."""
    from kube_rig.cluster import CLUSTER, running
    from kube_rig.isolation import Isolation, ToThisMachine

    CLUSTER.require_tools()
    with CLUSTER.cache_held() as cache:
        with running(cache, print) as cluster:
            yield cluster
        assert Isolation(cache, ToThisMachine()).left() == []


@pytest.fixture(scope="session")
def product(cluster: "Cluster") -> str:
    """The name of this checkout's image, which the node has."""
    from kube_rig.cluster import CLUSTER
    from kube_rig.images import build_product

    image = build_product(CLUSTER.cache_folder(), print)
    cluster.node.load(image.archive)
    return image.name


def tried(cluster: "Cluster", document: dict[str, Any]) -> str:
    """What is said of an object that is tried and not made."""
    from kube_rig.cluster import CommandError

    try:
        return cluster.kubectl("create", "--dry-run=server", "--filename", "-", given=json.dumps(document))
    except CommandError as refusal:
        return str(refusal)


def allowed(cluster: "Cluster", document: dict[str, Any]) -> bool:
    """Whether the object could be made."""
    return "created" in tried(cluster, document)


@pytest.fixture(scope="module")
def guarded(cluster: "Cluster") -> "Iterator[Cluster]":
    """A cluster with the policies and the agents' rights; where they were installed before, they stay."""
    from rig_parts import until

    there = bool(cluster.get("validatingadmissionpolicies")["items"])
    rendered = yaml.safe_load_all((K8S / "base/sublet.yaml").read_text())
    wanted = [d for d in rendered if d["kind"] in POLICIES or f"{d['kind']}/{d['metadata']['name']}" in AGENT]
    if not there:
        cluster.wait_gone(f"namespace/{SYSTEM}")
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--kustomize", str(K8S / "crds"))
        cluster.kubectl("wait", "crd", "--for=condition=Established", f"--timeout={patience_s(60):.0f}s", "--all")
        cluster.apply(namespace, *wanted)
    about = {"name": "gold", "namespace": "default", "annotations": {"katalyst.kubewharf.io/qos_level": "gold"}}
    spec = {"containers": [{"name": "main", "image": "none.example/none"}]}
    gold = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}
    until(lambda: "there is no level" in tried(cluster, gold), IN_FORCE_LIMIT_S, "policies in force")
    yield cluster
    if not there:
        cluster.kubectl("delete", "--filename", "-", given=yaml.safe_dump_all(wanted))
        cluster.kubectl("delete", "namespace", SYSTEM, "--wait=false")
        cluster.kubectl("delete", "--kustomize", str(K8S / "crds"))


@pytest.fixture(scope="module")
def permitted(guarded: "Cluster") -> Iterator[str]:
    """A namespace that may use the classes that protect."""
    labels = {f"sublet.io/{right}": "allowed" for right in ("dedicated-cores", "system-cores", "cpuset-pools")}
    guarded.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "permitted", "labels": labels}})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "permitted"}}
    guarded.apply(account)
    yield "permitted"
    guarded.kubectl("delete", "namespace", "permitted", "--wait=false")
