"""`sublet migrate` on a real cluster: a DaemonSet called koordlet leaves the node, Sublet enforces, and back."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube_rig.cluster import Cluster
from kube_rig.node import NODE
from kube_rig.product import Product
from rig_parts import until

from sublet.migrate.labels import AGENT_LABEL, DONE, TAKEOVER

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

CHECKOUT = Path(__file__).parents[2]
SOON_S, COMMAND_S = 90.0, 240.0
STAYING, KOORDLET, ELSEWHERE = "moved-service", "koordlet", "koordinator-system"

Document = dict[str, Any]


def container(name: str, image: str) -> Document:
    return {"name": name, "image": image, "imagePullPolicy": "Never", "command": ["sleep", "infinity"]}


def service(image: str) -> Document:
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container("main", image)]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": STAYING}, "spec": spec}


def koordlet(image: str) -> tuple[Document, Document, Document]:
    """A DaemonSet that does nothing, under the name of Koordinator's, and the ConfigMap beside it."""
    labels = {"koord-app": KOORDLET}
    pod = {"terminationGracePeriodSeconds": 1, "nodeSelector": {"kubernetes.io/hostname": NODE},
           "tolerations": [{"operator": "Exists"}], "containers": [container(KOORDLET, image)]}  # fmt: skip
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    thresholds = json.dumps({"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 60}})
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": spec,
         "metadata": {"name": KOORDLET, "namespace": ELSEWHERE}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slo-controller-config", "namespace": ELSEWHERE},
         "data": {"resource-threshold-config": thresholds}},
    )  # fmt: skip


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """Installed beside it, observing, on a node with a service."""
    assert product
    image = cluster.images.base.name
    cluster.kubectl("delete", "namespace", ELSEWHERE, "--ignore-not-found")
    cluster.apply(*koordlet(image))
    installed = Product(cluster)
    installed.start(service(image))
    installed.install({}, mode=None)
    until(lambda: agents(cluster), SOON_S, "koordlet's pod")
    yield installed
    for kind in ("adminqosconfigurations", "katalystcustomconfigs"):
        cluster.kubectl("delete", kind, "--all", "--all-namespaces")
    cluster.kubectl("label", "node", NODE, f"{TAKEOVER}-", f"{AGENT_LABEL}-")
    cluster.kubectl("delete", "namespace", ELSEWHERE, "--wait=false")
    installed.end(STAYING)
    installed.uninstall()
    installed.leave()


def agents(cluster: Cluster) -> list[str]:
    """The pods of the DaemonSet that run."""
    said = cluster.kubectl(
        "--namespace", ELSEWHERE, "get", "pods", "--field-selector=status.phase=Running", "--output=name"
    )
    return said.split()


def migrate(cluster: Cluster, *words: str) -> tuple[int, str]:
    """Exit code and answer of `sublet migrate koordinator`."""
    env = {"NO_PROXY": "*", "PYTHONPATH": str(CHECKOUT), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    typed = [sys.executable, "-m", "sublet", "migrate", "koordinator", *words, "--kubeconfig", str(cluster.admin)]
    done = subprocess.run(typed, env=env, capture_output=True, text=True, check=False, timeout=COMMAND_S)
    return done.returncode, done.stdout + done.stderr


def conditions(sublet: Product) -> dict[str, str]:
    return {row["type"]: row["status"] for row in sublet.resource()["status"]["conditions"]}


def label(cluster: Cluster) -> str | None:
    found: str | None = cluster.get("node", NODE)["metadata"]["labels"].get(TAKEOVER)
    return found


def test_both_beside_each_other_are_planned_and_checked(sublet: Product, cluster: Cluster) -> None:
    code, said = migrate(cluster, "plan")
    assert code == 0, said
    assert "settings.advisor.policies.koordinator.suppress_threshold_percent: 60" in said
    until(lambda: conditions(sublet).get("AgentReady") == "True", SOON_S, "central's word on the agent")
    code, said = migrate(cluster, "install")
    assert code == 0, said
    assert "Sublet observes on 1 node with koordlet" in said


def test_a_dry_run_changes_nothing(sublet: Product, cluster: Cluster) -> None:
    assert conditions(sublet)
    before = cluster.get("daemonset", KOORDLET, "--namespace", ELSEWHERE)["metadata"]["generation"]
    code, said = migrate(cluster, "takeover", NODE)
    assert code == 0, said
    assert f"{TAKEOVER}=done (dry run)" in said
    assert label(cluster) is None
    assert cluster.get("daemonset", KOORDLET, "--namespace", ELSEWHERE)["metadata"]["generation"] == before


def test_a_node_is_taken_over_twice_and_given_back_and_its_service_runs_on(sublet: Product, cluster: Cluster) -> None:
    uids = sublet.pods()
    code, said = migrate(cluster, "takeover", NODE, "--apply")
    assert code == 0, said
    assert label(cluster) == DONE
    assert agents(cluster) == []
    assert "Observing" not in conditions(sublet)
    assert migrate(cluster, "takeover", NODE, "--apply") == (0, f"node {NODE} is Sublet's\n")
    code, said = migrate(cluster, "back", NODE, "--apply")
    assert code == 0, said
    assert label(cluster) is None
    until(lambda: agents(cluster), SOON_S, "koordlet's pod")
    assert conditions(sublet).get("Observing") == "True"
    assert sublet.pods() == uids
    pod = cluster.get("pod", STAYING)
    assert [one["restartCount"] for one in pod["status"]["containerStatuses"]] == [0]
