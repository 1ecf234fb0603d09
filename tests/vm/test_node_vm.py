"""The tutorial on a whole node with 48 CPUs: systemd, containerd, runc and kubelet, cgroup v2 and the systemd driver.

The control plane, central and its hub are outside of the emulated machine, in a network with no way out of it. What was
said is kept in `out/kubernetes/quick-start-48.md`, and once all of the tutorial has passed in
docs/quick-start-transcript.md.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from guest import listings as printed
from kube_rig.certificates import Authority
from kube_rig.cluster import CLUSTER
from kube_rig.images import build_product, prepare_images
from kube_rig.installation import Installation
from kube_rig.node import NODE, Makings
from kube_rig.programs import build_programs
from kube_rig.tutorial import (
    LOAD,
    LOAD_SCOPE,
    MEMORY,
    OVERCOMMIT,
    QUICK_START,
    configure,
    forget,
    free_memory_threshold,
    node_taints,
    printed_taint,
    taints,
)
from node_rig.cluster import BESIDE, GuestCluster, running
from node_rig.disturbances import Pair
from node_rig.root import build_disks
from node_rig.walk import OFFER_LIMIT_S, TAINT_LIMIT_S, Walk
from rig.build import VM
from rig_parts import until

from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, TUTORIAL_RECLAIMED_CPU

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1800)]

CHECKOUT = Path(__file__).parents[2]
KEPT, PAGE = CHECKOUT / "out/kubernetes/quick-start-48.md", CHECKOUT / "docs/quick-start-transcript.md"
NODES, AGENTS, PATIENCE = 2, 1, 8.0
"""The node that is not emulated has no agent. Code runs six to ten times slower in the emulated machine."""
QUIET_S, GRACE_S = 60.0, 120
"""An eviction that takes more than half as long again as the pod's grace is told as failed: here all takes its time."""
# The tutorial's figures are those of young tenants, and an emulated machine may need long for its story.
YOUNG = {
    "node": {"nodeSelector": {"kubernetes.io/hostname": NODE}},
    "probes": {"timeoutSeconds": 60},
    "settings": {"advisor": {"policies": {"adaptive": {"cold_start_s": 86_400}}, "policy_budget_ms": 5000}},
}
SHARED, RECLAIMED = "shared-normal-pod", "reclaimed-normal-pod"
LARGER, SMALLER, BUSY, STAYING = (f"{kind}-large-pod-{n}" for kind in ("reclaimed", "shared") for n in (2, 1))
ROOM_MILLIS = 24_000
"""What the larger one asks for."""
BALLAST_MIB, MARGIN_MIB, MIB = 1500, 700, 1 << 20

Document = dict[str, Any]


def quick_start_pod(name: str) -> Document:
    """As the tutorial prints it."""
    document: Document = yaml.safe_load((QUICK_START / f"{name}.yaml").read_text())
    return document


def large(name: str, **amounts: str) -> Document:
    """A pod as the tutorial's `*-large-pod-*`, which its text does not print: as its normal ones, and larger."""
    document = quick_start_pod(f"{name.partition('-')[0]}-normal-pod")
    document["metadata"]["name"] = name
    document["spec"]["terminationGracePeriodSeconds"] = GRACE_S
    names = {"cpu": "cpu", "memory": "memory"}
    words = "stress -c 1"
    if name.startswith("reclaimed"):
        names, words = {"cpu": RECLAIMED_CPU, "memory": RECLAIMED_MEMORY}, "sleep infinity"
    document["spec"]["containers"][0]["command"] = ["sh", "-c", f"trap exit TERM; {words} & wait"]
    resources = document["spec"]["containers"][0]["resources"]
    for kind in ("requests", "limits"):
        resources[kind] |= {names[one]: amount for one, amount in amounts.items()}
    return document


# The busy one may use half a core, however many loops run in it: its load counts all that want to run, and 40 real
# loops would leave the emulator no time for anything else.
LARGE = (
    large(STAYING, cpu="12", memory="256Mi"),
    large(BUSY, cpu="500m", memory="256Mi"),
    large(SMALLER, cpu="12k", memory="24Gi"),
    large(LARGER, cpu="24k", memory="48Gi"),
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuestCluster]:
    """Ready, with nothing on it."""
    VM.require_tools()
    CLUSTER.require_tools()
    with CLUSTER.cache_held() as cache:
        programs, images = build_programs(cache, print), prepare_images(cache, print)
        product = build_product(cache, print)
        disks = build_disks(programs, (images.pause, images.stress, product), images.pause, print)
        folder = tmp_path_factory.mktemp("node") / "cluster"
        (folder / "logs").mkdir(parents=True)
        makings = Makings(programs, Authority(folder / "certificates"), images, folder, cache)
        with running(disks, makings, product) as cluster:
            yield cluster


def test_kubelet_is_ready_with_the_systemd_driver_on_cgroup_v2_and_48_cpus(node: GuestCluster) -> None:
    found = node.get("node", NODE)["status"]
    assert found["capacity"]["cpu"] == "48"
    assert found["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
    said = node.guest.shell("cat /proc/1/comm; stat -fc %T /sys/fs/cgroup; ls -d /sys/fs/cgroup/kubepods*")
    assert said.split() == ["systemd", "cgroup2fs", "/sys/fs/cgroup/kubepods.slice"]
    assert driver(node) == "systemd"
    cpus = node.guest.shell(
        "cat /sys/devices/system/node/node*/cpulist /sys/fs/cgroup/kubepods.slice/cpuset.cpus.effective"
    )
    assert cpus.split() == [*printed.NODE_CPUS, "0-47"]


def driver(node: GuestCluster) -> str:
    """By what kubelet makes its groups, as it says itself."""
    config = json.loads(node.kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/configz"))["kubeletconfig"]
    return str(config["cgroupDriver"])


@pytest.fixture(scope="module")
def walk(node: GuestCluster) -> Iterator[Walk]:
    """Installed from the chart, as on any cluster; what belongs to no node is on the one that is not emulated."""
    sublet = Installation(node, patience=PATIENCE)
    story = Walk(sublet, node)
    try:
        node.kubectl("cordon", NODE)
        sublet.install(YOUNG)
        node.kubectl("cordon", BESIDE.name)
        node.kubectl("uncordon", NODE)
        yield story
    finally:
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(story.page())


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> None:
    if "walk" in request.fixturenames:
        walk: Walk = request.getfixturevalue("walk")
        walk.sublet.say(request.node.name.removeprefix("test_").replace("_", " "))
        walk.step()


def test_an_idle_node_offers_44k(walk: Walk) -> None:
    walk.wait_offer("44k", "idle")


def test_with_a_shared_pod_it_offers_42k_and_the_sets_are_those_of_the_text(walk: Walk) -> None:
    walk.sublet.start(quick_start_pod(SHARED))
    walk.wait_offer("42k", "one shared pod")
    walk.wait_cpus(SHARED, printed.SHARE_6, "one shared pod")
    walk.sublet.start(quick_start_pod(RECLAIMED))
    walk.wait_cpus(RECLAIMED, printed.RECLAIM_42, "a reclaimed pod beside it")


def test_in_peak_hours_it_offers_40k_and_the_reclaimed_pod_gives_way(walk: Walk) -> None:
    with walk.sublet.load(SHARED, "stress", "-c", "2"):
        walk.wait_offer("40k", "peak")
        walk.wait_cpus(SHARED, printed.SHARE_8, "peak")
        walk.wait_cpus(RECLAIMED, printed.RECLAIM_40, "peak")
        assert walk.sublet.evict_lines() == []


def test_when_the_pods_are_gone_it_offers_44k_again(walk: Walk) -> None:
    walk.sublet.end(SHARED, RECLAIMED)
    walk.wait_offer("44k", "pods gone")


def test_above_five_times_the_offer_the_larger_pod_goes_and_below_ten_times_nobody(walk: Walk) -> None:
    walk.sublet.start(*LARGE)
    configure(walk.sublet, (QUICK_START / "eviction-threshold.yaml").read_text(), "ec", nodes=NODES, agents=AGENTS)
    with walk.sublet.load(BUSY, "stress", "-c", "40"):
        walk.wait_offer(printed.OFFERED_AT_PEAK, "over-commitment")
        walk.stays(QUIET_S, "over-commitment below ten times")
        forget(walk.sublet, "ec")
        walk.step()
        walk.wait_evicted(LARGER, TUTORIAL_RECLAIMED_CPU, OVERCOMMIT, "over-commitment above five times")
    assert walk.sublet.pods().keys() == {STAYING, BUSY, SMALLER}


def test_where_memory_is_short_the_pod_that_uses_most_goes_and_the_node_is_tainted(walk: Walk) -> None:
    walk.sublet.end(BUSY, SMALLER)
    walk.sublet.wait_offer(ROOM_MILLIS, 48_000, OFFER_LIMIT_S)  # it rises step by step
    walk.sublet.start(LARGE[1], LARGE[3])
    configure(walk.sublet, (QUICK_START / "memory-thresholds.yaml").read_text(), "ec", nodes=NODES, agents=AGENTS)
    free = int(walk.node.guest.shell("awk '/^MemFree/ {print $2}' /proc/meminfo")) * 1024
    configure(
        walk.sublet,
        yaml.safe_dump_all(free_memory_threshold(free - MARGIN_MIB * MIB)),
        "aqc",
        nodes=NODES,
        agents=AGENTS,
    )
    walk.step()
    with walk.sublet.load(LARGER, "stress", "--vm", "1", "--vm-bytes", f"{BALLAST_MIB}M", "--vm-hang", "1000"):
        walk.wait_taint(0, "memory")
        walk.wait_evicted(LARGER, "memory", MEMORY, "memory")
    assert printed_taint(0)["key"] in {one["key"] for one in node_taints(walk.sublet)}
    forget(walk.sublet, "ec", "aqc")
    until(lambda: not taints(walk.sublet), TAINT_LIMIT_S, "a node without taints")


def test_load_above_the_pools_cpus_taints_and_above_the_hard_threshold_its_largest_source_goes(
    walk: Walk, request: pytest.FixtureRequest
) -> None:
    before = walk.sublet.pods()
    with walk.sublet.load(BUSY, "stress", "-c", "50"):
        walk.wait_taint(1, "load")
        assert walk.sublet.pods() == before
        with walk.sublet.load(BUSY, "stress", "-c", "100"):
            walk.wait_evicted(BUSY, LOAD_SCOPE, LOAD, "load")
    assert walk.sublet.pods() == {name: uid for name, uid in before.items() if name != BUSY}
    if request.session.testsfailed == 0:
        PAGE.write_text(walk.page())


@pytest.fixture(scope="module")
def pair(walk: Walk) -> Pair:
    """The tutorial's two pods beside each other, with its figures."""
    third = quick_start_pod(RECLAIMED)
    third["metadata"]["name"] = "reclaimed-third-pod"
    pair = Pair(walk, SHARED, RECLAIMED, third)
    pair.begin(quick_start_pod(SHARED), quick_start_pod(RECLAIMED))
    return pair


@pytest.mark.parametrize("unit", ["kubelet", "containerd"])
def test_what_is_killed_below_the_pods_costs_none_of_them_anything(pair: Pair, unit: str) -> None:
    before = pair.running()
    pair.kill(unit)
    pair.is_well(f"{unit} killed")
    pair.end_third()
    assert pair.running() == before


def test_with_swap_on_the_node_offers_the_same_and_batch_pods_get_none_of_it(pair: Pair) -> None:
    before = pair.running()
    pair.turn_swap_on()
    pair.is_well("swap on")
    swap = {name: pair.walk.of_group(name, "memory.swap.max") for name in (RECLAIMED, pair.third["metadata"]["name"])}
    pair.end_third()
    assert pair.running() == before
    assert set(swap.values()) == {"0"}, swap


def test_after_a_reboot_the_pods_run_again_with_their_sets_and_nobody_was_evicted(pair: Pair) -> None:
    before = pair.running()
    pair.reboot()
    pair.is_well("rebooted")
    pair.end_third()
    assert pair.running()[SHARED].uid == before[SHARED].uid


def test_with_the_driver_cgroupfs_offer_and_sets_are_the_same(pair: Pair) -> None:
    pair.use_driver("cgroupfs")
    pair.is_well("driver cgroupfs")
    pair.end_third()
    assert driver(pair.walk.node) == "cgroupfs"
    assert pair.walk.node.guest.shell("ls -d /sys/fs/cgroup/kubepods*").split() == ["/sys/fs/cgroup/kubepods"]


def test_on_cgroup_v1_with_the_driver_systemd_offer_and_sets_are_the_same(pair: Pair) -> None:
    pair.use_cgroup_v1()
    pair.is_well("cgroup v1, driver systemd")
    pair.end_third()
    assert driver(pair.walk.node) == "systemd"
    said = pair.walk.node.guest.shell("stat -fc %T /sys/fs/cgroup; ls -d /sys/fs/cgroup/cpuset/kubepods*")
    assert said.split() == ["tmpfs", "/sys/fs/cgroup/cpuset/kubepods.slice"]
