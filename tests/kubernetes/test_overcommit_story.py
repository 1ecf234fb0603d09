"""The story of an over-committed node on a real kubelet: a label and a config make it sell more CPU than it has,
kubelet goes on reporting, a pod comes that would not have fitted, and without the config it is over.

What was typed and said is kept in `out/kubernetes/overcommit-story.txt`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube_rig.cluster import Cluster
from kube_rig.node import NODE
from kube_rig.product import Product
from rig_parts import until

from shared.contracts.kube.overcommit import DOMAIN, POOL_LABEL
from shared.contracts.kube.quantities import format_millis, parse_millis

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

SEEN_LIMIT_S = 60.0
RATIO, POOL = 1.5, "spare"
CONFIGS = "nodeovercommitconfigs.overcommit.katalyst.kubewharf.io"
SETTINGS = {
    "overcommit": {"enabled": True},
    # The label is enough, and the node says nothing while this runs: what others do on this machine decides nothing.
    "settings": {
        "central": {"kubernetes": {"overcommit": {"by_label_alone": True}}},
        "reporter": {"overcommit": {"window_s": 3600}},
    },
}
TRANSCRIPT = Path(__file__).parents[2] / "out/kubernetes/overcommit-story.txt"

Document = dict[str, Any]


def config(name: str, **ratios: str) -> Document:
    spec = {"nodeOvercommitSelectorVal": POOL, "resourceOvercommitRatio": ratios}
    kind = {"apiVersion": "overcommit.katalyst.kubewharf.io/v1alpha1", "kind": "NodeOvercommitConfig"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """Installed with over-commitment, which is off in the chart."""
    installed = Product(cluster)
    installed.install(SETTINGS)
    installed.in_system("rollout", "status", "deployment/sublet-webhook", f"--timeout={SEEN_LIMIT_S:.0f}s")
    yield installed
    cluster.kubectl("delete", CONFIGS, "--all")
    cluster.kubectl("label", "node", NODE, f"{POOL_LABEL}-")
    if left := installed.pods():
        installed.end(*left)
    installed.uninstall()
    installed.leave()
    TRANSCRIPT.parent.mkdir(parents=True, exist_ok=True)
    TRANSCRIPT.write_text("\n".join(installed.transcript))


def cpu_millis(cluster: Cluster, field: str = "allocatable") -> int:
    return parse_millis(cluster.get("node", NODE)["status"][field]["cpu"])


def annotations(cluster: Cluster) -> dict[str, str]:
    found = cluster.get("node", NODE)["metadata"].get("annotations", {})
    return {key: value for key, value in found.items() if key.startswith(f"{DOMAIN}/")}


def heartbeat(cluster: Cluster) -> str:
    """When kubelet last wrote the node's status."""
    conditions = cluster.get("node", NODE)["status"]["conditions"]
    (ready,) = [one for one in conditions if one["type"] == "Ready"]
    assert ready["status"] == "True"
    return str(ready["lastHeartbeatTime"])


def reasons(cluster: Cluster, name: str) -> dict[str, str]:
    conditions = cluster.get(CONFIGS, name).get("status", {}).get("conditions", [])
    return {one["type"]: one["reason"] for one in conditions}


def filler(image: str, millis: int) -> Document:
    amounts = {"cpu": format_millis(millis), "memory": "16Mi"}
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "resources": {"requests": amounts},
                 "command": ["sh", "-c", "trap exit TERM; sleep infinity & wait"]}  # fmt: skip
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "filler"}, "spec": spec}


def test_a_node_sells_more_than_it_has_until_its_config_goes(sublet: Product, cluster: Cluster) -> None:
    own = cpu_millis(cluster)
    sublet.type("label", "node", NODE, f"{POOL_LABEL}={POOL}")
    for one in (config("absurd", cpu="99"), config("spare", cpu=str(RATIO))):
        sublet.type("apply", "--filename", "-", given=json.dumps(one, indent=1))
    until(lambda: cpu_millis(cluster) == int(own * RATIO), SEEN_LIMIT_S, "an amplified node")
    assert parse_millis(annotations(cluster)[f"{DOMAIN}/original_allocatable_cpu"]) == own
    until(lambda: reasons(cluster, "spare").get("Advertised") == "AsSet", SEEN_LIMIT_S, "its status")
    assert cluster.get(CONFIGS, "spare")["status"]["matchedNodeList"] == [NODE]
    until(lambda: reasons(cluster, "absurd") == {"Valid": "Refused"}, SEEN_LIMIT_S, "a refusal")
    sublet.say("kubelet goes on reporting, and what it reports is amplified once")
    before = heartbeat(cluster)
    until(lambda: heartbeat(cluster) != before, SEEN_LIMIT_S, "kubelet's next status")
    assert cpu_millis(cluster) == cpu_millis(cluster, "capacity") == int(own * RATIO)
    sublet.say("a pod that asks for more than the node has is placed, and kubelet takes it")
    sublet.start(filler(cluster.images.base.name, own))
    assert cluster.get("pod", "filler")["spec"]["nodeName"] == NODE
    sublet.type("get", CONFIGS)
    sublet.end("filler")
    sublet.type("delete", CONFIGS, "--all")
    until(lambda: cpu_millis(cluster) == cpu_millis(cluster, "capacity") == own, SEEN_LIMIT_S, "kubelet's own figures")
    until(lambda: not annotations(cluster), SEEN_LIMIT_S, "no annotation of it")
    assert heartbeat(cluster)
