"""Metrics on kubelet's groups: pools are the sums of their pods, whatever comes and goes."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubelet_node import API, BATCH, ENCODE, MIB, OWNER, SHARE, WEB, Node, QuietNode, S, pod
from present import present

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.tripwire import UNSEEN_NS
from services.metrics.core.figures.results import LastPass
from services.metrics.core.figures.values import Raw
from services.metrics.core.reads.stillness import Stillness
from services.metrics.core.sample.summary import summarise
from services.metrics.registry import known_sources
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import NodeSample, PoolReading


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


def test_tenants_of_a_home_that_has_not_moved_are_not_read_and_those_of_one_that_has_are(node: Node) -> None:
    quiet = QuietNode(node)
    home = node.layout.pod_group(WEB).rpartition("/")[0]
    assert home == node.layout.pod_group(API).rpartition("/")[0]
    quiet.say(home, quiet.tenants_ns)
    quiet.tripwire.forget()
    assert quiet.probe() == 20 * S
    quiet.use("others", 2 * UNSEEN_NS)
    quiet.say(node.layout.pod_group(WEB), 15 * S)  # as no kernel would have it: so it shows whether it is read
    assert quiet.probe() == 20 * S
    quiet.say(home, quiet.tenants_ns + 1000)
    quiet.use("others", 2 * UNSEEN_NS)
    quiet.say(node.layout.pod_group(WEB), 15 * S)
    assert quiet.probe() == 25 * S
    quiet.tripwire.forget()
    quiet.say(node.layout.pod_group(WEB), 16 * S)
    assert quiet.probe() == 26 * S, "a pass has read them meanwhile"


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


class StillNode(Node):
    """A node whose homes count what runs below them, as the kernel's do, and the files that are read of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "cgroupfs", 1)
        classes = ("shared_cores",) * 3 + ("reclaimed_cores",) * 3
        self.pods = [pod(f"{n:02x}", kube="BestEffort", qos=qos) for n, qos in enumerate(classes)]
        self.seconds = {one.uid: 10.0 + n for n, one in enumerate(self.pods)}
        self.read: list[str] = []

    def count(self) -> None:
        for one in self.pods:
            self.used(one, self.seconds[one.uid])
        for home in {self.layout.pod_group(one).rpartition("/")[0] for one in self.pods}:
            self.tree.group(home, usage_ns=int(sum(self.seconds.values()) * S))

    def sampled(self, *, after_s: float = 4.0) -> NodeSample:
        """One pass, and in `read` the files that it has read."""
        self.read.clear()
        return self.sample(self.pods, after_s=after_s)


class NeverStill(Stillness):
    """Believes no group."""

    def begin(self, homes: Mapping[str, Raw]) -> None:
        """Nothing stands still."""

    def add(self, group: str, raw: Raw) -> None:
        """Nothing stands still."""


@pytest.fixture
def still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StillNode:
    node = StillNode(tmp_path)
    file = HostReader.file

    def counted(self: HostReader, path: str) -> str | None:
        node.read.append(path)
        return file(self, path)

    monkeypatch.setattr(HostReader, "file", counted)
    node.count()
    return node


def of_pods(node: StillNode) -> set[str]:
    return {one.uid for one in node.pods for path in node.read if f"pod{one.uid}" in path}


def test_while_a_home_stands_still_none_of_its_pods_is_read_and_who_has_run_is_seen_at_once(still: StillNode) -> None:
    for _ in range(3):
        still.sampled()
    before = still.sampled(after_s=0.1)
    assert of_pods(still) == set()
    assert present(before.pool("share")).cpu_usage_cores == 0
    worker = still.pods[1].uid
    still.seconds[worker] += 2.0
    still.count()
    after = still.sampled()
    assert of_pods(still) == {one.uid for one in still.pods}
    assert present(after.pool("share")).cpu_usage_cores == pytest.approx(0.5)
    usage = {one.pod.uid: one.containers[0].cpu_usage_cores for one in after.pods}
    assert usage == pytest.approx({one.uid: 0.5 if one.uid == worker else 0.0 for one in still.pods})
    calm = still.sampled()
    assert present(calm.pool("share")).cpu_usage_cores == 0
    assert {one.containers[0].cpu_usage_cores for one in calm.pods} == {0.0}


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.0, 1.0])), max_size=8))
def test_what_is_told_of_pods_that_are_not_read_is_what_reading_them_would_tell(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, float]]
) -> None:
    node = StillNode(tmp_path_factory.mktemp("node"))
    node.count()
    host = HostReader(node.tree.root, Cgroups(node.tree.root))
    plain, memory = Collector(host, known_sources(), node.targets, lambda: node.now_s), LastPass()
    plain._stillness = NeverStill()
    for who, seconds in [(0, 0.0)] * 3 + steps:
        node.seconds[node.pods[who].uid] += seconds
        node.count()
        told = node.sample(node.pods)
        fields, memory = summarise(memory, plain.collect(node.pods).readings, plain.offered, node.pods, node.now_s)
        assert told.pools == tuple(fields["pools"])
        assert told.pods == tuple(fields["pods"])
