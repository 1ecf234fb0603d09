"""Whom kubelet has pinned, by what the pods' groups have: for an agent without a sight of kubelet's folder."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_kubelet_groups import BATCH, OWNER, SHARE, TENANT, Kubelet, pod

from services.qrm.adapters.kernel.kubelet import KernelPins, sees_folder
from shared.adapters.host.kubelet_checkpoints import CPU_MANAGER_FILE
from shared.contracts.pod import Pod
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Unavailable

PINNED = pod("9", "shared_cores", "Guaranteed", 4)
FRACTION = pod("8", "shared_cores", "Guaranteed", 0)


class Known:
    """The pods of the node."""

    def __init__(self, *pods: Pod) -> None:
        self.known, self.number = pods, 1

    def pods(self) -> Sequence[Pod]:
        return self.known

    def generation(self) -> int:
        if not self.number:
            raise Unavailable("not listed yet")
        return self.number


@pytest.fixture(params=[("cgroupfs", 1), ("systemd", 2)], ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Kubelet:
    return Kubelet(tmp_path, *request.param)


def pins(node: Kubelet, *pods: Pod) -> KernelPins:
    return KernelPins(node.plain.cgroups, node.layout, Known(*pods))


def pin(node: Kubelet, one: Pod, cpus: str) -> None:
    """As kubelet does, which writes the container's group and not the pod's."""
    node.run(one)
    node.plain.set(node.container(one), "cpuset.cpus", cpus)


def test_a_container_narrower_than_its_pod_with_as_many_cpus_as_it_asked_for_is_kubelets(node: Kubelet) -> None:
    pin(node, PINNED, "1-4")
    node.run(TENANT, BATCH)
    assert pins(node, PINNED, TENANT, BATCH).read() == {PINNED.uid: CpuSet.parse("1-4")}


def test_under_the_policy_none_nobody_is_and_that_stays_so_after_sublet_has_written(node: Kubelet) -> None:
    node.run(PINNED, FRACTION)
    found = pins(node, PINNED, FRACTION)
    assert found.read() == {}
    node.apply(PINNED, FRACTION)
    assert node.cpus(PINNED) == (SHARE, SHARE)
    assert found.read() == pins(node, PINNED, FRACTION).read() == {}


def test_a_pod_of_its_own_by_sublet_is_not_kubelets_also_in_the_next_life(node: Kubelet) -> None:
    node.run(OWNER, TENANT)
    found = pins(node, OWNER, TENANT)
    assert found.read() == {}
    node.apply(OWNER, TENANT)
    assert len(CpuSet.parse(node.cpus(OWNER)[1])) == 4
    assert pins(node, OWNER, TENANT).read() == {}


def test_before_its_container_is_there_a_pod_is_left_alone_and_so_is_nobody_else(node: Kubelet) -> None:
    node.plain.add(node.layout.pod_group(PINNED))
    found = pins(node, PINNED, TENANT)
    assert found.read() == {PINNED.uid: CpuSet()}
    node.plain.add(node.container(PINNED))
    node.plain.set(node.container(PINNED), "cpuset.cpus", "1-4")
    assert found.read() == {PINNED.uid: CpuSet.parse("1-4")}


def test_a_container_that_starts_again_does_not_make_its_pod_unknown(node: Kubelet) -> None:
    node.run(PINNED)
    found = pins(node, PINNED)
    assert found.read() == {}
    shutil.rmtree(node.plain.folder(node.container(PINNED), "cpuset"))
    assert found.read() == {}


@pytest.mark.parametrize("cpus", ["0-47", "1-3", "1-5"])
def test_another_number_of_cpus_is_the_pool_that_kubelet_shares(node: Kubelet, cpus: str) -> None:
    pin(node, PINNED, cpus)
    assert pins(node, PINNED).read() == {}


def test_where_no_pod_is_known_nobody_is_pinned(node: Kubelet) -> None:
    source = Known(PINNED)
    source.number = 0
    assert KernelPins(node.plain.cgroups, node.layout, source).read() == {}


def test_kubelets_folder_is_seen_where_its_checkpoint_is(tmp_path: Path) -> None:
    assert not sees_folder(tmp_path)
    (tmp_path / CPU_MANAGER_FILE).parent.mkdir(parents=True)
    assert not sees_folder(tmp_path)
    (tmp_path / CPU_MANAGER_FILE).mkdir()
    assert sees_folder(tmp_path)
