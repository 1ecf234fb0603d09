"""A whole node with 48 CPUs: systemd, containerd, runc and kubelet, cgroup v2 and the systemd driver.

The control plane is outside of the emulated machine; both are in a network with no way out of it.
"""

import json
from collections.abc import Iterator

import pytest
from guest import listings as printed
from kube_rig.cluster import CLUSTER
from kube_rig.images import build_product, prepare_images
from kube_rig.node import NODE
from kube_rig.programs import build_programs
from node_rig.cluster import GuestCluster, running
from node_rig.root import build_disks
from rig.build import VM

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuestCluster]:
    """Ready, with nothing on it."""
    VM.require_tools()
    CLUSTER.require_tools()
    with CLUSTER.cache_held() as cache:
        programs, images = build_programs(cache, print), prepare_images(cache, print)
        contents = (images.pause, images.stress, build_product(cache, print))
        disks = build_disks(programs, contents, images.pause, print)
    with running(disks, programs, tmp_path_factory.mktemp("node") / "cluster") as cluster:
        yield cluster


def test_kubelet_is_ready_with_the_systemd_driver_on_cgroup_v2_and_48_cpus(node: GuestCluster) -> None:
    found = node.get("node", NODE)["status"]
    assert found["capacity"]["cpu"] == "48"
    assert found["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
    said = node.guest.shell("cat /proc/1/comm; stat -fc %T /sys/fs/cgroup; ls -d /sys/fs/cgroup/kubepods*")
    assert said.split() == ["systemd", "cgroup2fs", "/sys/fs/cgroup/kubepods.slice"]
    config = json.loads(node.kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/configz"))["kubeletconfig"]
    assert config["cgroupDriver"] == "systemd"
    cpus = node.guest.shell(
        "cat /sys/devices/system/node/node*/cpulist /sys/fs/cgroup/kubepods.slice/cpuset.cpus.effective"
    )
    assert cpus.split() == [*printed.NODE_CPUS, "0-47"]
