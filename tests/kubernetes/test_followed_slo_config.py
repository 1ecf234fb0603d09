"""Koordinator's ConfigMap on a real API server: its NodeSLO, its Event, its admission, and how soon a change works.

The time from a change to its effect on the node is printed; a command on the node alone takes a part of it.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kube_rig.cluster import Cluster, CommandError
from kube_rig.node import NODE
from kube_rig.product import Product
from rig_parts import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(420)]

SYSTEM, NAME, KEY = "koordinator-system", "slo-controller-config", "resource-threshold-config"
PROMISED_S, BUSY_FACTOR, SEEN_LIMIT_S = 3.0, 10, 60.0
VALUES = {"slo": {"enabled": True}}

Document = dict[str, Any]


def config_map(text: str) -> Document:
    metadata = {"name": NAME, "namespace": SYSTEM}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}


def thresholds(**strategy: object) -> Document:
    return config_map(json.dumps({"clusterStrategy": strategy}))


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """Installed so that the ConfigMap is followed and judged; there is none yet."""
    installed = Product(cluster)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    installed.install(VALUES)
    installed.in_system("rollout", "status", "deployment/sublet-webhook", f"--timeout={SEEN_LIMIT_S:.0f}s")
    yield installed
    installed.uninstall()
    installed.leave()
    cluster.kubectl("delete", "namespace", SYSTEM, "--wait=false")


def node_slo(cluster: Cluster) -> Document:
    """What the node's NodeSLO says of suppression; nothing while there is none."""
    found = [one for one in cluster.get("nodeslos")["items"] if one["metadata"]["name"] == NODE]
    said: Document = found[0]["spec"]["resourceUsedThresholdWithBE"] if found else {}
    return said


def test_each_node_has_its_node_slo_which_goes_with_it(sublet: Product, cluster: Cluster) -> None:
    until(lambda: node_slo(cluster).get("cpuSuppressThresholdPercent") == 65, SEEN_LIMIT_S, "the NodeSLO")
    (owner,) = cluster.get("nodeslos", NODE)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Node", cluster.get("node", NODE)["metadata"]["uid"])


def test_a_change_works_on_the_node_soon_and_is_said(
    sublet: Product, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    began_s = time.monotonic()
    cluster.apply(thresholds(enable=True, cpuSuppressThresholdPercent=55))
    until(lambda: "policy koordinator" in sublet.node_command("status"), PROMISED_S * BUSY_FACTOR, "the policy")
    with capsys.disabled():
        print(f"\nConfigMap to policy on the node: {time.monotonic() - began_s:.1f} s, the command on it included")
    until(lambda: node_slo(cluster).get("cpuSuppressThresholdPercent") == 55, SEEN_LIMIT_S, "the NodeSLO")
    asked = ("exec", "deployment/sublet-central", "--", "python", "-m", "sublet", "config", "slo", "--node", NODE)
    said = json.loads(sublet.in_system(*asked, "--output", "json"))
    assert said["keys"][KEY]["strategy"]["cpuSuppressThresholdPercent"] == 55


def test_what_cannot_be_followed_is_refused_before_it_is_stored(sublet: Product, cluster: Cluster) -> None:
    def refused() -> str:
        try:
            bad = json.dumps(thresholds(enable=True, cpuSuppressThresholdPercent=101))
            cluster.kubectl("apply", "--dry-run=server", "--filename", "-", given=bad)
        except CommandError as error:
            return str(error)
        return ""

    until(refused, SEEN_LIMIT_S, "the webhook's answer")
    assert "cpuSuppressThresholdPercent = 101: want at most 100" in refused()


def test_what_came_past_the_webhook_keeps_the_last_good_and_is_an_event(sublet: Product, cluster: Cluster) -> None:
    hook = ("validatingwebhookconfiguration", "sublet-pod-profiles")
    cluster.kubectl("delete", *hook)
    cluster.apply(config_map("{"))

    def events() -> list[str]:
        found = json.loads(cluster.kubectl("--namespace", SYSTEM, "get", "events.events.k8s.io", "--output", "json"))
        return [one["note"] for one in found["items"] if one["reason"] == "SloConfigRefused"]

    until(events, SEEN_LIMIT_S, "the Event")
    assert KEY in events()[0]
    assert "the last good one holds" in events()[0]
    assert node_slo(cluster)["cpuSuppressThresholdPercent"] == 55
    assert "policy koordinator" in sublet.node_command("status")


def test_what_somebody_else_writes_is_left_alone(sublet: Product, cluster: Cluster) -> None:
    theirs = {"spec": {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 11}}}
    words = ("patch", "nodeslos", NODE, "--type=merge", "--field-manager=koord-manager", "--patch", json.dumps(theirs))
    cluster.kubectl(*words)
    cluster.apply(thresholds(enable=False))
    until(lambda: "policy adaptive" in sublet.node_command("status"), PROMISED_S * BUSY_FACTOR, "the node's own policy")
    assert node_slo(cluster)["cpuSuppressThresholdPercent"] == 11
    cluster.kubectl("delete", "nodeslos", NODE)
    until(lambda: node_slo(cluster).get("cpuSuppressThresholdPercent") == 65, SEEN_LIMIT_S, "a NodeSLO of its own")
