"""qrm on kubelet's groups: pods and containers are written, what lies above them is not; nobody who is pinned."""

from pathlib import Path

import pytest
from plain_cgroups import PlainCgroups
from qrm_world import TUTORIAL_NODE

from services.qrm.adapters.checkpoint.former_values import FILE, FormerValuesFile
from services.qrm.adapters.kernel.groups import CgroupGroups
from services.qrm.adapters.kernel.machine import HostMachine
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.placement.arrangement import Node, arrange
from services.qrm.core.statement import mixed_pods, mixed_text, pods_in_force, pools_in_force
from services.qrm.core.writes.group_settings import GroupSettings
from services.qrm.core.writes.outcome import WriteOutcome
from shared.contracts.advice import PoolAdvice, PoolSize
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob, Version
from shared.core.cgroups.kubelet_layout import Driver, KubeletLayout
from shared.core.cgroups.layout import OwnLayout
from shared.core.cpus.cpuset import CpuSet

GIB = 1 << 30
RECLAIM, SHARE = "0-10,12-21,24-34,36-45", "11,22-23,35,46-47"
BOUND = {"katalyst.kubewharf.io/memory_enhancement": '{"numa_binding": "true"}'}


def pod(uid: str, qos: str, kube: str, cores: int = 0, **fields: object) -> Pod:
    container = Container(name="c", cpu_request_millis=1000 * cores, id=f"containerd://{uid * 12}")
    return Pod(uid=uid, name=uid, qos=qos, kube_qos=kube, containers=(container,), **fields)


TENANT = pod("a", "shared_cores", "Burstable", 2)
BATCH = pod("b", "reclaimed_cores", "BestEffort", 2)
OWNER = pod("d", "dedicated_cores", "Guaranteed", 4, annotations=BOUND)


class Kubelet:
    """A node with kubelet's tree as plain files."""

    def __init__(self, folder: Path, driver: Driver, version: Version) -> None:
        self.layout = KubeletLayout(driver)
        self.plain = PlainCgroups(folder, version=version)
        self.pinned: dict[str, CpuSet] = {}
        self.starting: frozenset[str] = frozenset()
        for group in sorted({self.layout.top, *self.layout.homes}):
            self.plain.add(group)
        self.store = FormerValuesFile(folder / "state", "f00d")
        self.machine = HostMachine(self.plain.cgroups, lambda: TUTORIAL_NODE, read_pinned=lambda: self.pinned)
        self.groups = self.another_life()

    def another_life(self) -> CgroupGroups:
        """What a process begins with, before it has asked for what the one before left."""
        writer = CgroupWriter(self.plain.cgroups, self.layout.top)
        return CgroupGroups(writer, self.machine, self.layout, former_store=self.store)

    def damage_record(self) -> None:
        folder = self.plain.cgroups.root.parents[2] / "state"
        folder.mkdir(exist_ok=True)
        (folder / FILE).write_text("{")

    def container(self, pod: Pod) -> str:
        group = self.layout.container_group(pod, pod.containers[0])
        assert group is not None
        return group

    def run(self, *pods: Pod) -> None:
        for one in pods:
            self.plain.add(self.layout.pod_group(one))
            self.plain.add(self.container(one))

    def apply(self, *pods: Pod, limit_bytes: int | None = None, now_s: float = 0.0) -> WriteOutcome:
        advice = PoolAdvice(
            node="n", boot_id="00c0ffee", service="advisor", seq=1, sent_at="2026-01-01T00:00:00Z", policy="canonical",
            pools=(PoolSize(pool="share", cpus=6), PoolSize(pool="reclaim", cpus=42)),
            reclaimed_cpu_millis=42000, reclaimed_memory_bytes=GIB,
        )  # fmt: skip
        ours = [pod for pod in pods if pod.uid not in self.pinned]
        memory = {0: 1 << 40, 1: 1 << 40}
        there = Node(TUTORIAL_NODE, memory, ours, pinned=self.machine.barred, starting=self.starting)
        self.what = arrange(there, advice, "reclaim-first")
        return self.groups.apply(self.what, pods, GroupSettings(2000, limit_bytes), now_s)

    def cpus(self, pod: Pod) -> tuple[str, str]:
        """Of the pod's group and of its container's."""
        return self.plain.get(self.layout.pod_group(pod)), self.plain.get(self.container(pod))


@pytest.fixture(params=[(driver, version) for driver in ("cgroupfs", "systemd") for version in (1, 2)], ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Kubelet:
    return Kubelet(tmp_path, *request.param)


def test_pods_and_containers_get_their_pool_and_the_groups_above_stay_kubelets(node: Kubelet) -> None:
    node.run(TENANT, BATCH)
    outcome = node.apply(TENANT, BATCH)
    assert not outcome.problems
    assert node.cpus(TENANT) == (SHARE, SHARE)
    assert node.cpus(BATCH) == (RECLAIM, RECLAIM)
    assert {node.plain.get(group) for group in (node.layout.top, *node.layout.homes)} == {"0-47"}
    assert node.apply(TENANT, BATCH).writes == 0


def test_a_dedicated_pod_has_cpus_of_its_own(node: Kubelet) -> None:
    node.run(TENANT, BATCH, OWNER)
    node.apply(TENANT, BATCH, OWNER)
    own, others = CpuSet.parse(node.cpus(OWNER)[0]), CpuSet.parse(node.cpus(BATCH)[0])
    assert len(own) == 4
    assert not own & (others | CpuSet.parse(node.cpus(TENANT)[0]))


def test_a_pod_whose_group_is_not_there_yet_is_no_problem_and_comes_later(node: Kubelet) -> None:
    assert not node.apply(TENANT).problems
    node.run(TENANT)
    node.apply(TENANT)
    assert node.cpus(TENANT) == (SHARE, SHARE)


def test_a_pod_that_kubelet_has_pinned_keeps_what_kubelet_wrote(node: Kubelet) -> None:
    node.run(TENANT, OWNER)
    node.pinned = {OWNER.uid: CpuSet.parse("1-4")}
    node.machine.refresh()
    node.apply(TENANT, OWNER)
    assert node.cpus(OWNER) == ("0-47", "0-47")
    assert not CpuSet.parse(node.cpus(TENANT)[0]) & CpuSet.parse("1-4")


def test_only_reclaimed_pods_are_put_behind_all_others(node: Kubelet) -> None:
    node.run(TENANT, BATCH)
    node.apply(TENANT, BATCH)

    def idle(pod: Pod) -> str:
        return node.plain.get(node.layout.pod_group(pod), "cpu.idle", "cpu")

    assert (idle(BATCH), idle(TENANT)) == ("1", "0")
    weight = "cpu.shares" if node.plain.version == 1 else "cpu.weight"
    top = node.plain.get(node.layout.top, weight, "cpu")
    assert top == ("1024" if node.plain.version == 1 else "100")


def test_a_container_that_may_burst_gets_its_allowance(node: Kubelet) -> None:
    said = {"katalyst.kubewharf.io/cpu_enhancement": '{"cpu_burst_policy": "static", "cpu_burst_percent": "50"}'}
    container = Container(name="c", cpu_limit_millis=2000, id=f"containerd://{'f' * 12}")
    bursting = Pod(uid="f", name="f", kube_qos="Burstable", containers=(container,), annotations=said)
    node.run(bursting)
    for group in (node.layout.pod_group(bursting), node.container(bursting)):
        node.plain.cgroups.write(group, Knob.CPU_QUOTA, 2000)
    assert not node.apply(bursting).problems
    name = "cpu.cfs_burst_us" if node.plain.version == 1 else "cpu.max.burst"
    assert node.plain.get(node.container(bursting), name, "cpu") == "100000"
    assert node.plain.get(node.layout.pod_group(bursting), name, "cpu") == "100000"


def test_the_memory_limit_goes_to_the_best_effort_group_while_it_holds_reclaimed_pods_alone(node: Kubelet) -> None:
    name = "memory.limit_in_bytes" if node.plain.version == 1 else "memory.max"
    home = node.layout.homes[2]
    unlimited = node.plain.get(home, name, "memory")
    mixed = pod("e", "shared_cores", "BestEffort")
    node.run(BATCH, mixed)
    node.apply(BATCH, mixed, limit_bytes=GIB)
    assert node.plain.get(home, name, "memory") == unlimited
    assert node.groups.memory_limit() is None
    node.apply(BATCH, limit_bytes=GIB)
    assert node.groups.memory_limit() is not None


def test_limits_of_the_class_are_lifted_once_when_a_mid_pod_shares_its_group(node: Kubelet) -> None:
    home, cgroups = node.layout.homes[2], node.plain.cgroups
    mid = pod("e", "shared_cores", "BestEffort", 1)
    knobs = [Knob.CPU_QUOTA, Knob.MEMORY_MAX] + ([Knob.MEMORY_HIGH] if node.plain.version == 2 else [])
    node.run(BATCH, mid)
    node.apply(BATCH, limit_bytes=GIB)
    cgroups.write(home, Knob.CPU_QUOTA, 2000)
    assert UNLIMITED not in [cgroups.read(home, knob) for knob in knobs]
    assert not node.apply(BATCH, mid, limit_bytes=GIB).problems
    assert {cgroups.read(home, knob) for knob in knobs} == {UNLIMITED}
    cgroups.write(home, Knob.CPU_QUOTA, 3000)
    node.apply(BATCH, mid, limit_bytes=GIB)
    assert cgroups.read(home, Knob.CPU_QUOTA) == 3000, "what somebody else writes there later is theirs"


def test_the_pods_are_named_beside_which_the_class_has_no_limits(node: Kubelet) -> None:
    mid, misfit = pod("e", "shared_cores", "BestEffort", 1), pod("f", "reclaimed_cores", "Burstable")
    assert mixed_pods((TENANT, BATCH), node.layout) == []
    assert mixed_pods((TENANT, mid), node.layout) == [], "there is nobody to limit"
    assert mixed_pods((TENANT, BATCH, mid, misfit), node.layout) == ["default/e", "default/f"]
    assert mixed_pods((BATCH, mid), OwnLayout()) == []
    assert mixed_text("") == ""
    assert "default/e" in mixed_text("default/e")


def test_what_is_said_is_what_the_pods_have_and_for_a_pool_without_pods_what_the_next_one_gets(node: Kubelet) -> None:
    node.run(TENANT)
    outcome = node.apply(TENANT)
    pods = pods_in_force((TENANT,), node.what.owned, outcome, node.layout)
    assert [(p.pool, p.cpus) for p in pods] == [("share", SHARE)]
    pools = pools_in_force(node.what.pools, pods, outcome, node.layout, None)
    assert {p.pool: p.cpus for p in pools} == {"share": SHARE, "reclaim": RECLAIM}


def test_a_tree_without_a_cpuset_controller_is_said(node: Kubelet) -> None:
    node.run(TENANT)
    for name in ("cpuset.cpus", "cpuset.mems"):
        (node.plain.folder(node.layout.pod_group(TENANT), "cpuset") / name).unlink()
    first = node.apply(TENANT)
    assert not first.problems  # its controllers may be on their way
    assert "cpuset controller" in first.pending[0].why
    for now_s in (1.0, 2.0, 3.0):
        last = node.apply(TENANT, now_s=now_s)
    (problem,) = last.problems
    assert "cpuset controller" in problem.why
