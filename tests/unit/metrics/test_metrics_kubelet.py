"""Metrics on kubelet's groups: pools are the sums of their pods, whatever comes and goes."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_trees import KernelTree
from present import present

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.targets import LayoutTargets
from services.metrics.adapters.tripwire import UNSEEN_NS, HostTripwire
from services.metrics.core.figures.results import LastPass
from services.metrics.core.reads.pooled import pool_of_members
from services.metrics.core.sample.summary import summarise
from services.metrics.registry import known_sources
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.kubelet_tree import find_layout
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import NodeSample, PoolReading
from shared.core.cgroups.kubelet_layout import Driver, KubeletLayout

S = 10**9
MIB = 1 << 20
SHARE = pool_of_members("share")


def pod(uid: str, qos: str = "shared_cores", kube: str = "Burstable", **fields: object) -> Pod:
    container = Container(name="main", id=f"containerd://{uid * 6}")
    return Pod(uid=uid, name=uid, qos=qos, kube_qos=kube, containers=(container,), **fields)


WEB, API, OWNER = pod("aa"), pod("bb"), pod("cc", "dedicated_cores", "Guaranteed")
BATCH, ENCODE = pod("dd", "reclaimed_cores", "BestEffort"), pod("ee", "reclaimed_cores", "BestEffort")


class Node:
    """A node with kubelet's tree; a pod's group counts what its containers used, and those that have ended."""

    def __init__(self, folder: Path, driver: Driver, version: int) -> None:
        self.tree = KernelTree(folder, version)
        self.tree.machine()
        self.tree.node()
        self.layout = KubeletLayout(driver)
        for group in self.layout.homes:
            self.tree.group(group)
            (self.tree.folder(group, "cpuset")).mkdir(parents=True, exist_ok=True)
        cgroups = Cgroups(folder)
        assert find_layout(cgroups) == self.layout
        self.targets = LayoutTargets(folder, self.layout)
        self.now_s, self.memory = 0.0, LastPass()
        self.collector = Collector(HostReader(folder, cgroups), known_sources(), self.targets, lambda: self.now_s)
        self.tripwire = HostTripwire(folder, cgroups, self.targets.tenants)

    def used(self, pod: Pod, seconds: float, memory: int = 100 * MIB, tasks: str = "") -> None:
        """What a pod has used since it began, and uses now."""
        figures: dict[str, Any] = {
            "usage_ns": int(seconds * S),
            "memory": memory,
            "rss": memory // 2,
            "inactive_file": memory // 4,
        }
        self.tree.group(self.layout.pod_group(pod), **figures)
        group = self.layout.container_group(pod, pod.containers[0])
        assert group is not None
        self.tree.group(group, **figures, tids=self.tree.tasks(tasks))

    def usage_file(self, group: str) -> Path:
        if self.tree.version == 1:
            return self.tree.folder(group, "cpuacct") / "cpuacct.usage"
        return self.tree.folder(group, "cpu") / "cpu.stat"

    def remove(self, pod: Pod) -> None:
        for controller in ("cpuset", "cpu", "cpuacct", "memory", "blkio"):
            folder = self.tree.folder(self.layout.pod_group(pod), controller)
            if folder.exists():
                folder.rename(self.tree.root / f"gone-{pod.uid}-{controller}-{self.now_s}")

    def sample(self, pods: Sequence[Pod], *, after_s: float = 2.0) -> NodeSample:
        """One pass; what failed is in `failures`."""
        self.now_s += after_s
        collected = self.collector.collect(pods)
        self.failures = collected.failures
        fields, self.memory = summarise(self.memory, collected.readings, self.collector.offered, pods, self.now_s)
        return NodeSample(node="n", boot_id="0" * 8, seq=1, sent_at=datetime.now(UTC), **fields)


@pytest.fixture(params=[(driver, version) for driver in ("cgroupfs", "systemd") for version in (1, 2)], ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    return Node(tmp_path, *request.param)


def test_a_pools_usage_is_that_of_its_pods(node: Node) -> None:
    pods = [WEB, API, OWNER, BATCH]
    for one, seconds in ((WEB, 10.0), (API, 20.0), (OWNER, 30.0), (BATCH, 40.0)):
        node.used(one, seconds)
    first = node.sample(pods)
    assert [pool.cpu_usage_cores for pool in first.pools] == [None] * 4
    for one, seconds in ((WEB, 11), (API, 20.5), (OWNER, 34), (BATCH, 40.2)):
        node.used(one, seconds, tasks="R")
    sample = node.sample(pods)
    assert {pool.pool: pool.cpu_usage_cores for pool in sample.pools if pool.pool != "reclaim"} == pytest.approx(
        {"share": 0.75, "dedicated": 2.0, "reserve": 0.0}
    )
    share = present(sample.pool("share"))
    assert (share.memory_usage_bytes, share.memory_rss_bytes, share.memory_working_set_bytes) == (
        200 * MIB, 100 * MIB, 150 * MIB,
    )  # fmt: skip
    assert share.runnable_tasks == 2
    assert (share.cpu_pressure, share.memory_limit_bytes, share.throttled_ratio, share.refault_pages_per_s) == (
        None,
    ) * 4
    assert not node.failures
    assert not [name for name in node.memory.rejected if not name.startswith("node")]


def test_containers_are_measured_where_kubelet_puts_them_and_one_without_an_id_has_no_figures(node: Node) -> None:
    fresh = Pod(uid="ff", name="fresh", phase="Pending", containers=(Container(name="main"),))
    node.used(WEB, 10)
    node.sample([WEB, fresh])
    node.used(WEB, 12)
    readings = {reading.pod.uid: reading.containers[0] for reading in node.sample([WEB, fresh]).pods}
    assert readings["aa"].cpu_usage_cores == pytest.approx(1)
    assert readings["ff"].model_dump(exclude_defaults=True) == {"name": "main"}


def test_reclaimed_pods_alone_in_a_group_are_told_by_it_with_its_limits(node: Node) -> None:
    best_effort = node.layout.homes[-1]
    node.used(BATCH, 1)
    for seconds in (4, 6):
        node.tree.group(best_effort, usage_ns=seconds * S, memory_limit=512 * MIB, cpu_quota_us=150_000)
        reclaim = present(node.sample([BATCH]).pool("reclaim"))
    assert (reclaim.cpu_usage_cores, reclaim.memory_limit_bytes, reclaim.cpu_limit_cores) == (1, 512 * MIB, 1.5)


def test_reclaimed_pods_beside_others_are_summed(node: Node) -> None:
    pods = [BATCH, ENCODE, pod("ab", kube="BestEffort")]
    for seconds in (4, 6):
        for one in pods:
            node.used(one, seconds)
        reclaim = present(node.sample(pods).pool("reclaim"))
    assert (reclaim.cpu_usage_cores, reclaim.memory_limit_bytes) == (2, None)


def test_a_pod_that_comes_or_goes_is_no_spike(node: Node) -> None:
    node.used(WEB, 10)
    node.used(API, 4)
    node.sample([WEB])
    for seconds, pods, cores in (
        (12, [WEB], 1), (14, [WEB, API], None), (16, [WEB, API], 1), (22, [WEB], None), (24, [WEB], 1),
    ):  # fmt: skip
        node.used(WEB, seconds)
        assert present(node.sample(pods).pool("share")).cpu_usage_cores == cores


def test_a_group_made_anew_under_its_name_is_no_spike(node: Node) -> None:
    pods = [WEB, API]
    for one in pods:
        node.used(one, 10)
    node.sample(pods)
    node.remove(API)
    node.used(API, 14)
    assert present(node.sample(pods).pool("share")).cpu_usage_cores is None
    assert present(node.sample(pods).pool("share")).cpu_usage_cores == 0


def test_a_group_that_is_not_there_is_not_in_the_sum(node: Node) -> None:
    pods = [WEB, API]
    for one in pods:
        node.used(one, 10)
    node.sample(pods)
    node.remove(API)
    assert present(node.sample(pods).pool("share")).cpu_usage_cores is None
    node.used(WEB, 12)
    assert present(node.sample(pods).pool("share")).cpu_usage_cores == 1


def test_a_file_that_cannot_be_read_makes_the_sum_absent_and_is_named(node: Node) -> None:
    pods = [WEB, API, OWNER]
    for one in pods:
        node.used(one, 10)
    node.sample(pods)
    file = node.usage_file(node.layout.pod_group(API))
    file.unlink()
    file.mkdir()
    spoilt = node.sample(pods)
    assert present(spoilt.pool("share")).cpu_usage_cores is None
    assert present(spoilt.pool("share")).memory_usage_bytes == 200 * MIB
    assert present(spoilt.pool("dedicated")).cpu_usage_cores == 0
    assert "cpu_usage" in node.failures
    file.rmdir()
    node.used(API, 10)
    assert [present(node.sample(pods).pool("share")).cpu_usage_cores for _ in range(2)] == [None, 0]


def test_a_link_in_place_of_a_pods_group_makes_the_sum_absent(node: Node, tmp_path: Path) -> None:
    node.used(WEB, 10)
    controller = "cpuacct" if node.tree.version == 1 else ""
    folder = node.tree.folder(node.layout.pod_group(API), controller)
    folder.symlink_to(tmp_path)
    share = node.sample([WEB, API]).pool("share")
    assert share is None or share.cpu_usage_cores is share.memory_usage_bytes is None
    assert "symbolic link" in node.failures["cgroup"]


def test_a_pool_without_pods_uses_nothing_and_one_whose_groups_are_missing_is_unknown(node: Node) -> None:
    node.sample([])
    empty = node.sample([])
    known = {pool.pool: (pool.cpu_usage_cores, pool.memory_usage_bytes) for pool in empty.pools}
    assert [known[name] for name in ("share", "dedicated", "reserve")] == [(0, 0)] * 3
    assert node.sample([WEB]).pool("share") is None
    pending = WEB.model_copy(update={"phase": "Pending"})
    assert present(node.sample([pending]).pool("share")).memory_usage_bytes == 0
    going = WEB.model_copy(update={"terminating": True})
    assert present(node.sample([going]).pool("share")).memory_usage_bytes == 0


def test_the_tripwire_sums_what_a_pass_sums(node: Node) -> None:
    pods = [WEB, API, BATCH]
    for one, seconds in ((WEB, 10), (API, 20), (BATCH, 40)):
        node.used(one, seconds)
    node.sample(pods)
    assert node.tripwire.probe()[0] is None, "the groups have changed since the tripwire was made"
    assert node.tripwire.probe()[0] == 30 * S
    assert node.collector.collect(pods).readings[SHARE].raw["cpu_usage_ns"] == 30 * S
    node.used(WEB, 12)
    assert node.tripwire.probe()[0] == 32 * S


def test_the_tripwire_says_nothing_once_when_pods_have_come_or_gone(node: Node) -> None:
    node.used(WEB, 10)
    node.used(API, 1000)
    node.sample([WEB])
    assert [node.tripwire.probe()[0] for _ in range(2)] == [None, 10 * S]
    node.sample([WEB, API])
    assert [node.tripwire.probe()[0] for _ in range(2)] == [None, 1010 * S]
    node.sample([API, WEB, BATCH])
    node.sample([WEB])
    assert [node.tripwire.probe()[0] for _ in range(2)] == [None, 10 * S]


def test_the_tripwire_leaves_out_who_is_not_there_and_knows_nothing_where_nobody_is(node: Node) -> None:
    node.used(WEB, 10)
    node.sample([WEB, API])
    node.tripwire.probe()
    assert node.tripwire.probe()[0] == 10 * S
    node.used(API, 1)
    node.usage_file(node.layout.pod_group(API)).write_text("usage_usec many\n")
    assert node.tripwire.probe()[0] is None
    node.remove(WEB)
    node.remove(API)
    assert node.tripwire.probe()[0] is None
    node.sample([])
    assert [node.tripwire.probe()[0] for _ in range(2)] == [None, 0]


class QuietNode:
    """A node whose tripwire looks at all pods first."""

    def __init__(self, node: Node) -> None:
        self.node, self.pods = node, [WEB, API]
        self.used = dict.fromkeys((WEB.uid, API.uid, "others"), 10 * S)
        for pod in self.pods:
            node.used(pod, 10)
        cgroups = Cgroups(node.tree.root)
        self.tripwire = HostTripwire(node.tree.root, cgroups, node.targets.tenants, node.layout.top)
        node.sample(self.pods)
        self.write()
        self.tripwire.probe()  # the groups have changed since it was made

    @property
    def tenants_ns(self) -> int:
        return self.used[WEB.uid] + self.used[API.uid]

    def write(self) -> None:
        for pod in self.pods:
            self.say(self.node.layout.pod_group(pod), self.used[pod.uid])
        self.say(self.node.layout.top, sum(self.used.values()))

    def say(self, group: str, used_ns: int) -> None:
        text = f"{used_ns}\n" if self.node.tree.version == 1 else f"usage_usec {used_ns // 1000}\n"
        self.node.usage_file(group).write_text(text)

    def use(self, who: str, more_ns: int) -> None:
        self.used[who] += more_ns
        self.write()

    def probe(self) -> int | None:
        return self.tripwire.probe()[0]


def test_tenants_are_read_again_only_when_all_pods_together_have_moved(node: Node) -> None:
    quiet = QuietNode(node)
    assert quiet.probe() == 20 * S
    quiet.use(WEB.uid, UNSEEN_NS - 1000)
    assert quiet.probe() == 20 * S
    quiet.use("others", 1000)
    assert quiet.probe() == quiet.tenants_ns
    quiet.use(API.uid, 1000)
    quiet.tripwire.forget()
    assert quiet.probe() == quiet.tenants_ns, "a pass has read them meanwhile"


@pytest.mark.parametrize("text", [None, "many\n", "usage_usec many\n"])
def test_where_all_pods_cannot_be_read_the_tenants_are_read_by_every_probe(node: Node, text: str | None) -> None:
    quiet = QuietNode(node)
    file = node.usage_file(node.layout.top)
    file.unlink() if text is None else file.write_text(text)
    for _ in range(2):
        assert quiet.probe() == quiet.tenants_ns
        quiet.used[WEB.uid] += 1000
        quiet.say(node.layout.pod_group(WEB), quiet.used[WEB.uid])


def test_a_pod_that_comes_ends_a_sum_that_stands(node: Node) -> None:
    quiet = QuietNode(node)
    assert quiet.probe() == 20 * S
    node.sample([WEB])
    assert [quiet.probe() for _ in range(2)] == [None, 10 * S]


STEPS = st.lists(
    st.tuples(st.sampled_from([WEB.uid, API.uid, "others"]), st.integers(0, 2 * UNSEEN_NS // 1000)), max_size=12
)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> QuietNode:
    return QuietNode(Node(tmp_path_factory.mktemp("quiet"), "cgroupfs", 1))


@given(STEPS)
def test_a_sum_that_stands_is_too_low_by_less_than_the_bound_and_never_too_high(
    quiet: QuietNode, steps: list[tuple[str, int]]
) -> None:
    for who, more_us in steps:
        quiet.use(who, more_us * 1000)
        assert 0 <= quiet.tenants_ns - present(quiet.probe()) < UNSEEN_NS


def test_every_figure_of_a_pool_is_there_that_others_decide_by(node: Node) -> None:
    """The advisor's views and the evictor's cpu_suppression read these (`NodeSample.pool`)."""
    for seconds in (10, 12):
        for one in (WEB, BATCH):
            node.used(one, seconds, tasks="R")
        node.tree.group(node.layout.homes[-1], usage_ns=seconds * S)
        sample = node.sample([WEB, BATCH])
    share, reclaim = sample.pool("share"), present(sample.pool("reclaim"))
    assert isinstance(share, PoolReading)
    assert None not in (share.cpu_usage_cores, share.sched_wait_tasks, share.memory_working_set_bytes, share.load1)
    assert None not in (reclaim.cpu_usage_cores, reclaim.memory_usage_bytes)
