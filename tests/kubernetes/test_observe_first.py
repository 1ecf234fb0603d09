"""A first install changes nothing on a real kubelet, under pressure either; one switch makes it work, and undoes it.

The pressure lasts from the start: the node counts as short of memory with less than all of it free.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from kube_rig.cluster import Cluster, CommandError
from kube_rig.node import NODE
from kube_rig.product import Product
from rig_parts import until
from slow_machines import patience_s

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(420)]

SEEN_LIMIT_S, EVICTED_LIMIT_S, BACK_LIMIT_S = 60.0, 90.0, 60.0
WHOLE_NODE_BYTES = 1 << 50
ALWAYS_SHORT = {
    "settings": {
        "qos_fallback": "kubernetes",  # a pod without requests is batch work: nothing is offered that it could ask for
        "reporter": {"rise_window_s": 5, "refresh_s": 5},
        "evictor": {
            "plugins": {"memory_pressure": {"period_s": 1, "numa_level": False, "minimum_free_bytes": WHOLE_NODE_BYTES}}
        },
    }
}
BATCH, STAYING = "batch", "service"
GROUP = "config.katalyst.kubewharf.io"

Document = dict[str, Any]


def pod(name: str, base: str, *, cpu: str = "") -> Document:
    """A pod at rest that says nothing of classes."""
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    container = {"name": "main", "image": base, "imagePullPolicy": "Never", "command": ["sleep", "infinity"],
                 "resources": resources}  # fmt: skip
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def switch(mode: str) -> tuple[Document, Document]:
    """The switch of one pool: the nodes with the label pool=tried."""
    kind = {"group": GROUP, "version": "v1alpha1", "resource": "adminqosconfigurations"}
    head: Document = {"apiVersion": f"{GROUP}/v1alpha1"}
    spec = {"nodeLabelSelector": "pool=tried", "config": {"sublet": {"mode": mode}}}
    return (
        head
        | {"kind": "KatalystCustomConfig", "metadata": {"name": "pools"}}
        | {"spec": {"targetType": kind, "nodeLabelSelectorAllowedKeyList": [{"priority": 0, "keyList": ["pool"]}]}},
        head | {"kind": "AdminQoSConfiguration", "metadata": {"name": "tried"}, "spec": spec},
    )


@pytest.fixture(scope="module")
def bare(cluster: Cluster) -> Product:
    """A node with a service and a batch pod, and no Sublet yet."""
    node, base = Product(cluster), cluster.images.base.name
    node.start(pod(STAYING, base, cpu="100m"), pod(BATCH, base))
    return node


@pytest.fixture(scope="module")
def before(bare: Product) -> dict[str, set[str]]:
    """The groups of both as kubelet made them."""
    return groups(bare)


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str, bare: Product, before: dict[str, set[str]]) -> Iterator[Product]:
    """Installed as the chart is, without the switch."""
    installed = bare
    assert len(before) == len(bare.pods())
    installed.install(ALWAYS_SHORT, mode=None)
    yield installed
    for document in switch("enforce"):
        cluster.kubectl("delete", "--ignore-not-found", "--filename", "-", given=json.dumps(document))
    installed.end(*installed.pods())
    installed.uninstall()
    installed.leave()


def groups(sublet: Product) -> dict[str, set[str]]:
    """Sets, weights and limits of both pods, as the kernel has them."""
    files = (
        "cpu.shares",
        "cpu.weight",
        "cpu.idle",
        "cpu.cfs_quota_us",
        "cpu.max",
        "memory.limit_in_bytes",
        "memory.max",
    )
    return {name: sublet.cpus(name) | sublet.kernel(name, *files) for name in (STAYING, BATCH)}


def evictor(sublet: Product) -> list[Document]:
    """The intents that the node tells of, the newest first."""
    try:
        told = json.loads(sublet.node_command("status", "--output", "json"))["evictions"]
    except CommandError:  # `status` says 1 as long as a service is not well, as one that has just begun
        return []
    return [row["intent"] for row in told if "intent" in row]


def test_a_first_install_under_pressure_says_whom_it_would_evict_and_changes_nothing(
    sublet: Product, cluster: Cluster, before: dict[str, set[str]]
) -> None:
    uids = sublet.pods()

    # The history outlives an installation: the node still tells of pods that an earlier one evicted.
    def intents() -> set[tuple[str, str]]:
        present = set(uids.values())
        return {(intent["pod"], intent["mode"]) for intent in evictor(sublet) if intent["pod_uid"] in present}

    until(intents, SEEN_LIMIT_S, "an eviction that would be")
    assert intents() == {(BATCH, "dry-run")}
    assert sublet.pods() == uids
    assert groups(sublet) == before
    assert (sublet.offer_millis(), sublet.sold_millis()) == (0, 0)
    assert not cluster.get("node", NODE)["spec"].get("taints")
    (observing,) = [row for row in sublet.resource()["status"]["conditions"] if row["type"] == "Observing"]
    assert "nothing is changed or offered; pools would be" in observing["message"]


def test_the_switch_of_a_pool_of_nodes_makes_it_so(sublet: Product, cluster: Cluster) -> None:
    for document in switch("enforce"):
        cluster.apply(document)
    cluster.kubectl("label", "node", NODE, "pool=tried", "--overwrite")
    cluster.wait_gone(f"pod/{BATCH}")
    until(lambda: (sublet.offer_millis() or 0) > 0, EVICTED_LIMIT_S, "an offer")


def test_the_switch_back_gives_pods_back_what_kubelet_gave_them(
    sublet: Product, cluster: Cluster, before: dict[str, set[str]]
) -> None:
    for document in switch("observe"):
        cluster.apply(document)
    until(lambda: (sublet.offer_millis(), sublet.sold_millis()) == (0, 0), BACK_LIMIT_S, "no offer")
    sublet.start(pod(BATCH, cluster.images.base.name))
    until(lambda: groups(sublet) == before, BACK_LIMIT_S, "groups as kubelet made them")
    assert not cluster.get("node", NODE)["spec"].get("taints")


def test_helm_test_asks_with_few_rights_whether_the_installation_works(sublet: Product, cluster: Cluster) -> None:
    said = sublet.test()
    for check in ("kinds", "agents", "node objects", "central", "bus", "events"):
        assert re.search(rf"^\s*(ok|warning)\s+{check}\s", said, re.MULTILINE), (check, said)
    assert "1 of 1 agents are ready" in said
    assert "sublet-test" not in cluster.kubectl("get", "clusterroles,clusterrolebindings", "--output", "name")


def test_helm_test_fails_and_says_why_where_central_is_gone(sublet: Product) -> None:
    sublet.in_system("scale", "deployment/sublet-central", "--replicas=0")
    try:
        sublet.in_system(
            "wait",
            "pods",
            "-l",
            "app.kubernetes.io/component=central",
            "--for=delete",
            f"--timeout={patience_s(60):.0f}s",
        )
        with pytest.raises(CommandError):
            sublet.test()
        assert "no pod of Deployment sublet-central is ready" in sublet.in_system("logs", "pod/sublet-test")
    finally:
        sublet.in_system("scale", "deployment/sublet-central", "--replicas=2")
        sublet.in_system("delete", "pod", "sublet-test", "--ignore-not-found")
