"""CPU burst on the real v1 kernel of this host: pod and container, within the quota, given back."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.qrm.adapters.kernel.isolation import GroupIsolation
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.isolation.rules import MemoryQos, NodeRules
from services.qrm.core.isolation.wanted import wanted_values
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.kubelet_layout import KubeletLayout

V1 = os.geteuid() == 0 and os.access("/sys/fs/cgroup/cpuset/cgroup.procs", os.W_OK)
pytestmark = [pytest.mark.root, pytest.mark.skipif(not V1, reason="needs root and a writable cgroup v1")]
POD = Pod(uid="a" * 8, name="a", kube_qos="Burstable", containers=(
    Container(name="c", cpu_limit_millis=2000, memory_request_bytes=1 << 26, id=f"docker://{'a' * 64}"),
    Container(name="d", cpu_limit_millis=500, id=f"docker://{'d' * 64}")))  # fmt: skip


class Node:
    """The pod's real groups, with the quotas that kubelet would write."""

    def __init__(self, cgroups: Cgroups, top: str) -> None:
        self.cgroups, self.layout = cgroups, KubeletLayout("cgroupfs", top)
        pod = self.layout.pod_group(POD)
        self.groups = [pod, *(self.layout.container_group(POD, one) or "" for one in POD.containers)]
        for group, millis in zip(self.groups, (2500, 2000, 500), strict=True):
            cgroups.make(group)
            cgroups.write(group, Knob.CPU_QUOTA, millis)
        self.isolation = GroupIsolation(CgroupWriter(cgroups, self.layout.top))

    def settle(self, rules: NodeRules) -> list[int]:
        """One pass without a problem; the bursts of pod and containers then."""
        assert self.isolation.settle(wanted_values([POD], self.layout, rules), 0.0, 0.0) == []
        return [int(self.cgroups.read(group, Knob.CPU_BURST) or 0) for group in self.groups]


@pytest.fixture
def node() -> Iterator[Node]:
    top, cgroups = f"sublet-test-{uuid.uuid4().hex[:8]}", Cgroups(Path("/"))
    try:
        made = Node(cgroups, top)
        if cgroups.raw(made.groups[0], Knob.CPU_BURST) is None:
            pytest.skip("this kernel has no CPU burst")
        yield made
    finally:
        assert cgroups.remove(top)


def test_pod_and_containers_may_save_up_and_all_of_it_ends(node: Node) -> None:
    assert node.settle(NodeRules(burst_percent=50)) == [1250, 1000, 250]
    node.cgroups.write(node.groups[1], Knob.CPU_BURST, 0)
    assert node.settle(NodeRules(burst_percent=50)) == [1250, 1000, 250]
    assert node.settle(NodeRules()) == [0, 0, 0]


def test_a_quota_that_kubelet_lowered_is_no_error(node: Node) -> None:
    node.cgroups.write(node.groups[1], Knob.CPU_QUOTA, 300)
    assert node.settle(NodeRules(burst_percent=100)) == [2500, 300, 500]


def test_what_v1_lacks_is_named_and_nothing_is_written(node: Node) -> None:
    rules = NodeRules(memory={"shared_cores": MemoryQos(50)}, identities={"shared_cores": 2})
    assert node.settle(rules) == [0, 0, 0]
    assert "memory.min" in node.isolation.lacking
