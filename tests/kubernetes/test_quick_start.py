"""The tutorial on a real kubelet: its pods, its commands, and what it prints, on as many CPUs as this machine has.

The numbers follow from the machine (shared by the whole node: on two CPUs the floor of one is half of it); the 48 CPUs
of the text have tests of their own. What was typed and said is kept in `out/kubernetes/quick-start.txt`.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kube_rig.cluster import Cluster
from kube_rig.node import NODE
from kube_rig.product import Product
from kube_rig.tutorial import (
    CREATED,
    LOAD,
    LOAD_SCOPE,
    MEMORY,
    OVERCOMMIT,
    QUICK_START,
    SUCCEEDED,
    Document,
    configure,
    forget,
    free_memory_threshold,
    lines_of,
    node_taints,
    ours_of_the_node,
    printed_taint,
    taints,
)
from rig_parts import until

from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.timeout(420),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) != 2, reason="its numbers are those of two CPUs"),
]

TRANSCRIPT = Path(__file__).parents[2] / "out/kubernetes/quick-start.txt"
ALL, HALF = "0-1", {"0", "1"}
IDLE_MILLIS, FLOOR_MILLIS = 1700, 1000
FALL_LIMIT_S, RISE_LIMIT_S, EVICT_LIMIT_S, TAINT_LIMIT_S = 30.0, 150.0, 60.0, 60.0
LOAD_LIMIT_S = 120.0
HASTE = {
    "settings": {
        "advisor": {
            "min_ramp_down_period_s": 5,
            # The figures are those of tenants that are young; with other tests before it the story may outlast that.
            "policies": {"adaptive": {"cold_start_s": 86_400}},
        },
        "reporter": {"rise_window_s": 5},
        "evictor": {
            "condition_transition_s": 8,
            "plugins": {"cpu_load": {"enabled": True, "period_s": 1, "metric_ring_size": 5}},
        },
    }
}
"""What would make one wait, shortened; and tenants stay young for as long as the story lasts."""
LARGER, SMALLER, CROWDING = "reclaimed-large-pod-2", "reclaimed-large-pod-1", "shared-large-pod-2"
BALLAST_MIB, MARGIN_MIB = 1500, 700
MIB = 1 << 20


def quick_start_pod(name: str, amounts: dict[str, str]) -> Document:
    """The tutorial's pod, with amounts that a node of two CPUs has; it ends without being waited for."""
    document: Document = yaml.safe_load((QUICK_START / f"{name}.yaml").read_text())
    document["spec"]["terminationGracePeriodSeconds"] = 1
    for kind in ("requests", "limits"):
        resources = document["spec"]["containers"][0]["resources"]
        assert amounts.keys() <= resources[kind].keys()
        resources[kind] |= amounts
    return document


def large(name: str, amounts: dict[str, str]) -> Document:
    """A pod as the tutorial's `*-large-pod-*`, which its text does not print: as its normal ones, and at rest."""
    kind = name.split("-")[0]
    document = quick_start_pod(f"{kind}-normal-pod", amounts)
    document["metadata"]["name"] = name
    document["spec"]["containers"][0]["command"] = ["sleep", "infinity"]
    return document


LARGE = (
    large("shared-large-pod-1", {"cpu": "100m", "memory": "128Mi"}),
    large(CROWDING, {"cpu": "200m", "memory": "128Mi"}),
    large(SMALLER, {RECLAIMED_CPU: "500", RECLAIMED_MEMORY: "1Gi"}),
    large(LARGER, {RECLAIMED_CPU: "1k", RECLAIMED_MEMORY: "2Gi"}),
)


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    installed = Product(cluster)
    installed.install(HASTE)
    yield installed
    TRANSCRIPT.parent.mkdir(parents=True, exist_ok=True)
    TRANSCRIPT.write_text("\n".join(installed.transcript))


@pytest.fixture(autouse=True)
def told(sublet: Product, request: pytest.FixtureRequest) -> None:
    sublet.say(request.node.name.removeprefix("test_").replace("_", " "))


def test_after_the_installation_the_node_offers_what_it_does_not_use(sublet: Product) -> None:
    sublet.wait_offer(IDLE_MILLIS, 2000, RISE_LIMIT_S)
    assert NODE in sublet.type("get", "kcnr")
    resource = sublet.resource()
    for part in ("resourceAllocatable", "resourceCapacity"):
        assert resource["status"][part].keys() == {TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY}
    status = yaml.safe_load(sublet.type("get", "kcnr", NODE, "--output", "yaml"))["status"]
    allocatable = sublet.cluster.get("node", NODE)["status"]["allocatable"]
    for ours, tutorials in ((RECLAIMED_CPU, TUTORIAL_RECLAIMED_CPU), (RECLAIMED_MEMORY, TUTORIAL_RECLAIMED_MEMORY)):
        assert allocatable[ours] == allocatable[tutorials] == status["resources"]["allocatable"][tutorials]


def test_a_shared_pod_that_gets_busy_takes_its_share_of_the_offer_and_of_the_cpus(sublet: Product) -> None:
    sublet.start(quick_start_pod("reclaimed-normal-pod", {RECLAIMED_CPU: "200"}))
    until(lambda: sublet.cpus("reclaimed-normal-pod") == {ALL}, FALL_LIMIT_S, "the reclaimed pod on all CPUs")
    sublet.start(quick_start_pod("shared-normal-pod", {"cpu": "1"}))
    sublet.wait_offer(FLOOR_MILLIS, FLOOR_MILLIS, FALL_LIMIT_S)
    until(lambda: sublet.cpus("reclaimed-normal-pod") < HALF, FALL_LIMIT_S, "the reclaimed pod on one CPU")
    assert sublet.cpus("shared-normal-pod") == {ALL}
    sublet.type("get", "kcnr")
    sublet.transcript.append(sublet.node_command("status"))


def test_what_the_shared_pod_gives_back_is_offered_again(sublet: Product) -> None:
    sublet.end("shared-normal-pod")
    sublet.wait_offer(IDLE_MILLIS, 2000, RISE_LIMIT_S)
    until(lambda: sublet.cpus("reclaimed-normal-pod") == {ALL}, FALL_LIMIT_S, "the reclaimed pod on all CPUs again")
    sublet.end("reclaimed-normal-pod")
    assert sublet.evict_lines() == []


def test_below_ten_times_what_is_left_nobody_is_evicted(sublet: Product) -> None:
    sublet.wait_offer(1600, 2000, RISE_LIMIT_S)
    sublet.start(*LARGE)
    configure(sublet, (QUICK_START / "eviction-threshold.yaml").read_text(), "ec")
    with sublet.load(CROWDING, "stress", "-c", "6", "-t", "30"):
        sublet.wait_offer(FLOOR_MILLIS, FLOOR_MILLIS, FALL_LIMIT_S)
    assert sublet.evict_lines() == []
    assert {SMALLER, LARGER} < sublet.pods().keys()


def test_above_the_threshold_that_is_changed_meanwhile_the_larger_pod_is_evicted(sublet: Product) -> None:
    before = sublet.pods()
    threshold = {"evictionThreshold": {TUTORIAL_RECLAIMED_CPU: 1.2}}
    spec = {"config": {"evictionPluginsConfig": {"reclaimedResourcesEvictionPluginConfig": threshold}}}
    sublet.type("patch", "ec", "default", "--type", "merge", "--patch", yaml.safe_dump({"spec": spec}))
    sublet.wait_evicted(LARGER, TUTORIAL_RECLAIMED_CPU, EVICT_LIMIT_S)
    sublet.transcript.append("$ kubectl get event -A | grep evict\n" + "\n".join(sublet.evict_lines()))
    names = {"scope": TUTORIAL_RECLAIMED_CPU, "plugin": OVERCOMMIT}
    assert lines_of(sublet, LARGER) == [
        ("EvictCreated", CREATED.format(**names)),
        ("EvictSucceeded", SUCCEEDED.format(**names)),
    ]
    assert sublet.pods() == {name: uid for name, uid in before.items() if name != LARGER}
    forget(sublet, "ec")


def test_load_above_the_pools_cpus_taints_and_above_nearly_twice_as_much_its_largest_source_goes(
    sublet: Product,
) -> None:
    before = sublet.pods()
    with sublet.load(CROWDING, "stress", "-c", "3", "-t", "300"):
        until(lambda: taints(sublet), LOAD_LIMIT_S, "the taint of the CustomNodeResource")
        assert sublet.pods() == before
        with sublet.load(CROWDING, "stress", "-c", "12", "-t", "300"):
            sublet.wait_evicted(CROWDING, LOAD_SCOPE, EVICT_LIMIT_S)
    sublet.type("get", "kcnr", NODE, "--output", "jsonpath={.spec.taints}")
    (taint,) = taints(sublet)
    assert (taint | {"timeAdded": ""}) == (printed_taint(1) | {"timeAdded": ""})
    names = {"scope": LOAD_SCOPE, "plugin": LOAD}
    assert lines_of(sublet, CROWDING) == [
        ("EvictCreated", CREATED.format(**names)),
        ("EvictSucceeded", SUCCEEDED.format(**names)),
    ]
    sublet.transcript.append("$ kubectl get event -A | grep evict\n" + "\n".join(sublet.evict_lines()))
    assert sublet.pods() == {name: uid for name, uid in before.items() if name != CROWDING}
    until(lambda: not taints(sublet) and not ours_of_the_node(sublet), TAINT_LIMIT_S, "a node without taints")


def test_memory_that_is_taken_is_got_back_from_the_pod_that_uses_most_and_the_node_is_tainted(sublet: Product) -> None:
    sublet.start(large(LARGER, {RECLAIMED_CPU: "100", RECLAIMED_MEMORY: "3Gi"}))
    before = sublet.pods()
    configure(sublet, (QUICK_START / "memory-thresholds.yaml").read_text(), "ec")
    configure(sublet, yaml.safe_dump_all(free_memory_threshold(meminfo("MemFree") - MARGIN_MIB * MIB)), "aqc")
    with sublet.load(LARGER, "stress", "--vm", "1", "--vm-bytes", f"{BALLAST_MIB}M", "--vm-hang", "1000"):
        until(lambda: taints(sublet), TAINT_LIMIT_S, "the taint of the CustomNodeResource")
        sublet.wait_evicted(LARGER, "memory", EVICT_LIMIT_S)
    sublet.type("get", "kcnr", NODE, "--output", "jsonpath={.spec.taints}")
    (taint,) = taints(sublet)
    printed = printed_taint(0)
    assert (taint | {"timeAdded": ""}) == (printed | {"timeAdded": ""})
    assert printed["key"] in {one["key"] for one in node_taints(sublet)}
    names = {"scope": "memory", "plugin": MEMORY}
    assert {("EvictCreated", CREATED.format(**names)), ("EvictSucceeded", SUCCEEDED.format(**names))} < set(
        lines_of(sublet, LARGER)
    )
    sublet.transcript.append("$ kubectl get event -A | grep evict\n" + "\n".join(sublet.evict_lines()))
    assert sublet.pods() == {name: uid for name, uid in before.items() if name != LARGER}


def test_the_taint_goes_when_the_memory_is_back(sublet: Product) -> None:
    forget(sublet, "ec", "aqc")
    until(lambda: not taints(sublet) and not ours_of_the_node(sublet), TAINT_LIMIT_S, "a node without taints")


def test_an_uninstalled_product_leaves_cluster_and_node_as_they_were(sublet: Product, cluster: Cluster) -> None:
    staying = sublet.pods()
    assert staying.keys() == {SMALLER, "shared-large-pod-1"}
    assert str(1 << 30) in sublet.kernel(SMALLER, "memory.limit_in_bytes", "memory.max")
    assert "1" in sublet.kernel(SMALLER, "cpu.idle")
    sublet.uninstall()
    assert sublet.left() == []
    assert sublet.pods() == staying
    assert {sublet.cpus(name) == {ALL} for name in staying} == {True}
    assert sublet.kernel(SMALLER, "cpu.idle") == {"0"}
    assert sublet.kernel(SMALLER, "cpu.shares", "cpu.weight") <= {"2", "1"}
    (limit,) = sublet.kernel(SMALLER, "memory.limit_in_bytes", "memory.max")
    assert limit == "max" or int(limit) > 1 << 60
    sublet.end(*staying)
    sublet.leave()
    cluster.kubectl("delete", "--kustomize", str(QUICK_START.parents[2] / "deploy/k8s/crds"), "--wait")


def meminfo(name: str) -> int:
    """Bytes."""
    (kib,) = re.findall(rf"(?m)^{name}:\s+(\d+) kB$", Path("/proc/meminfo").read_text())
    return int(kib) << 10
