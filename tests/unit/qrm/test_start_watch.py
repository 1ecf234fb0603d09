"""Reclaimed pods that start, in kubelet's groups: as kubelet made them until their containers run, then behind all."""

import asyncio
import shutil
from pathlib import Path

import pytest
from qrm_world import FLOOR, Lease, Run, pools
from qrm_world import Node as World
from test_kubelet_groups import BATCH, OWNER, RECLAIM, SHARE, TENANT, Kubelet

from services.qrm.adapters.kernel.pod_lists import LIST_AGAIN_S
from services.qrm.adapters.kernel.start_watch import StartWatch, process_name
from services.qrm.core.starting import StartRules
from shared.adapters.host.cgroup import V1_CONTROLLERS
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import Version
from shared.core.cgroups.kubelet_layout import Driver, KubeletLayout
from shared.core.cpus.cpuset import CpuSet

RULES = StartRules(most=4, each_s=60.0, each_cpu_s=10.0)
WIDE = str(CpuSet.parse(RECLAIM) | CpuSet.parse(SHARE))
SANDBOX = "0" * 12
INIT, PROGRAM = "runc:[2:INIT]", "python3"


class Starting(Kubelet):
    """A node with processes in its groups, and the watch over them."""

    def __init__(self, folder: Path, driver: Driver, version: Version) -> None:
        super().__init__(folder, driver, version)
        self.host = folder
        self.watch = StartWatch(self.plain.cgroups, self.layout, process_name(folder))
        self.now_s = 0.0

    def sandbox(self, pod: Pod) -> str:
        one = Container(name="sandbox", id=f"containerd://{SANDBOX}")
        group = self.layout.container_group(pod, one)
        assert group is not None
        return group

    def kubelet_makes(self, pod: Pod) -> None:
        """The pod's group, in which the sandbox sleeps."""
        self.plain.add(self.layout.pod_group(pod))
        self.plain.set(self.layout.pod_group(pod), *self._shares("2"))
        self.uses(pod, 0.0)
        self.plain.add(self.sandbox(pod))
        self.process(self.sandbox(pod), 1000, "pause")

    def process(self, group: str, pid: int, name: str) -> None:
        self.plain.set(group, "cgroup.procs", f"{pid}\n", "cpuset")
        (self.host / f"proc/{pid}").mkdir(parents=True, exist_ok=True)
        (self.host / f"proc/{pid}/comm").write_text(f"{name}\n")

    def uses(self, pod: Pod, cpu_s: float) -> None:
        v1 = self.plain.version == 1
        text = f"{cpu_s * 1e9:.0f}\n" if v1 else f"usage_usec {cpu_s * 1e6:.0f}\nuser_usec 0\n"
        self.plain.set(self.layout.pod_group(pod), "cpuacct.usage" if v1 else "cpu.stat", text, "cpuacct")

    def put(self, *pods: Pod) -> None:
        self.starting = self.watch.exempt(pods, RULES, self.now_s)
        assert not self.apply(*pods).problems

    def weight(self, pod: Pod) -> tuple[str, str]:
        group = self.layout.pod_group(pod)
        name, lowest = self._shares("2")[:2]
        return self.plain.get(group, "cpu.idle", "cpu"), "kubelet's" if self.plain.get(group, name, "cpu") == lowest \
            else "other"  # fmt: skip

    def _shares(self, shares: str) -> tuple[str, str, str]:
        return ("cpu.shares", shares, "cpu") if self.plain.version == 1 else ("cpu.weight", "1", "cpu")


@pytest.fixture(params=[(driver, version) for driver in ("cgroupfs", "systemd") for version in (1, 2)], ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Starting:
    return Starting(tmp_path, *request.param)


def test_a_pod_is_as_kubelet_made_it_until_its_container_runs(node: Starting) -> None:
    node.kubelet_makes(BATCH)
    for holds in (None, INIT):
        if holds:
            node.plain.add(node.container(BATCH))
            node.process(node.container(BATCH), 1001, holds)
        node.put(BATCH)
        assert node.starting == {BATCH.uid}
        assert node.weight(BATCH) == ("0", "kubelet's")
        assert node.plain.get(node.layout.pod_group(BATCH)) == WIDE
    node.process(node.container(BATCH), 1001, PROGRAM)
    node.put(BATCH)
    assert node.weight(BATCH)[0] == "1"
    assert node.cpus(BATCH) == (RECLAIM, RECLAIM)


def test_a_container_that_starts_anew_has_its_pods_weight_and_width_again_until_the_budget_is_spent(
    node: Starting,
) -> None:
    node.kubelet_makes(BATCH)
    node.plain.add(node.container(BATCH))
    node.process(node.container(BATCH), 1001, PROGRAM)
    node.put(BATCH)
    for controller in V1_CONTROLLERS:
        shutil.rmtree(node.plain.folder(node.container(BATCH), controller), ignore_errors=True)
    again = f"{node.layout.pod_group(BATCH)}/again"
    node.plain.add(again)
    node.process(again, 1002, INIT)
    node.put(BATCH)
    assert node.weight(BATCH) == ("0", "kubelet's")
    assert node.plain.get(node.layout.pod_group(BATCH)) == WIDE
    node.uses(BATCH, RULES.each_cpu_s + 1)
    node.now_s = 1.0
    node.put(BATCH)
    assert node.weight(BATCH)[0] == "1"
    assert node.plain.get(node.layout.pod_group(BATCH)) == RECLAIM


def test_a_pod_that_starts_is_never_on_a_cpu_that_is_somebodys_own(node: Starting) -> None:
    node.run(TENANT, OWNER)
    node.kubelet_makes(BATCH)
    node.put(TENANT, OWNER, BATCH)
    own, wide = (CpuSet.parse(node.plain.get(node.layout.pod_group(pod))) for pod in (OWNER, BATCH))
    assert len(own) == 4
    assert not own & wide
    assert wide == CpuSet.parse(node.cpus(TENANT)[0]) | CpuSet.union(node.what.pools[name] for name in ("reclaim",))


def test_a_group_that_cannot_be_counted_starts_behind_all_others(node: Starting) -> None:
    node.kubelet_makes(BATCH)
    name = "cpuacct.usage" if node.plain.version == 1 else "cpu.stat"
    (node.plain.folder(node.layout.pod_group(BATCH), "cpuacct") / name).unlink()
    node.put(BATCH)
    assert not node.starting
    assert node.weight(BATCH)[0] == "1"


def test_the_pass_follows_a_start_and_the_watchdogs_floor_knows_none(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        layout, lease = KubeletLayout("cgroupfs"), Lease()
        kubelet = Starting(tmp_path / "host", "cgroupfs", 1)
        kubelet.kubelet_makes(BATCH)
        group, program = layout.pod_group(BATCH), kubelet.container(BATCH)
        async with World(tmp_path, lease, plain=kubelet.plain, layout=layout, lease_s=600, period_s=60) as node:
            node.processes |= {1000: "pause", 1001: INIT}
            node.pods.known = [BATCH]
            await node.hear(node.advice())
            assert kubelet.plain.get(group) == WIDE
            assert pools(node.last)["reclaim"] == RECLAIM, "the pool is told as it is without who starts"
            await node.hear(node.advice())
            assert lease.renewals[-1][1][group] == FLOOR["reclaim"], "whoever has no qrm left has no start"
            kubelet.plain.add(program)
            kubelet.process(program, 1001, INIT)
            await asyncio.sleep(1.0)
            assert (kubelet.plain.get(group), kubelet.weight(BATCH)[0]) == (WIDE, "0")
            node.processes[1001] = PROGRAM
            await asyncio.sleep(1.0)
            assert (kubelet.plain.get(group), kubelet.weight(BATCH)[0]) == (RECLAIM, "1")

    virtual(story())


def test_a_container_that_took_anothers_place_unseen_is_found_by_the_next_list(
    node: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.kubelet_makes(BATCH)
    node.plain.add(node.container(BATCH))
    node.process(node.container(BATCH), 1001, PROGRAM)
    # The kernel's folders say no more than their number.
    monkeypatch.setattr(node.plain.cgroups, "mark", lambda group: len(node.plain.cgroups.children(group)))
    node.put(BATCH)
    assert not node.starting
    shutil.rmtree(node.plain.folder(node.container(BATCH), "cpuset"))
    again = f"{node.layout.pod_group(BATCH)}/again"
    node.plain.add(again)
    node.process(again, 1002, INIT)
    node.now_s = LIST_AGAIN_S
    node.put(BATCH)
    assert node.starting == {BATCH.uid}


def test_a_started_pod_is_not_listed_at_each_look(node: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
    node.kubelet_makes(BATCH)
    node.plain.add(node.container(BATCH))
    node.process(node.container(BATCH), 1001, PROGRAM)
    node.put(BATCH)
    listed: list[str] = []
    inodes = node.plain.cgroups.inodes

    def counted(group: str) -> dict[str, int]:
        listed.append(group)
        return inodes(group)

    monkeypatch.setattr(node.plain.cgroups, "inodes", counted)
    pods = [BATCH]
    for look in range(21):
        node.watch.exempt(pods, RULES, look * LIST_AGAIN_S / 10)
    assert listed == [node.layout.pod_group(BATCH)] * 3, "as the list of pods is new, and twice in turn"


def test_a_started_pod_is_looked_at_only_once_a_pod_of_its_home_has_run(
    node: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = node.layout.pod_group(BATCH).rpartition("/")[0]

    def all_have_used(cpu_s: float) -> None:
        v1 = node.plain.version == 1
        text = f"{cpu_s * 1e9:.0f}\n" if v1 else f"usage_usec {cpu_s * 1e6:.0f}\n"
        node.plain.set(home, "cpuacct.usage" if v1 else "cpu.stat", text, "cpuacct")

    node.kubelet_makes(BATCH)
    node.plain.add(node.container(BATCH))
    node.process(node.container(BATCH), 1001, PROGRAM)
    all_have_used(1.0)
    looked: list[str] = []
    mark = node.plain.cgroups.mark

    def counted(group: str) -> object:
        looked.append(group)
        return mark(group)

    pods = [BATCH]
    for _ in range(3):
        assert not node.watch.exempt(pods, RULES, 0.0)
    monkeypatch.setattr(node.plain.cgroups, "mark", counted)
    for look in range(10):
        assert not node.watch.exempt(pods, RULES, look * LIST_AGAIN_S)
    assert not looked
    for controller in V1_CONTROLLERS:
        shutil.rmtree(node.plain.folder(node.container(BATCH), controller), ignore_errors=True)
    again = f"{node.layout.pod_group(BATCH)}/again"
    node.plain.add(again)
    node.process(again, 1002, INIT)
    all_have_used(1.1)
    assert node.watch.exempt(pods, RULES, 100.0) == {BATCH.uid}
    assert looked


def test_a_waiting_pod_is_looked_into_only_in_turn_until_a_group_of_its_own_comes(
    node: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.kubelet_makes(BATCH)
    pods, read = [BATCH], list[str]()
    text = node.plain.cgroups.text

    def counted(group: str, name: str, controller: str = "") -> str | None:
        read.append(name)
        return text(group, name, controller)

    monkeypatch.setattr(node.plain.cgroups, "text", counted)
    for look in range(20):
        assert node.watch.exempt(pods, RULES, look * LIST_AGAIN_S / 10) == {BATCH.uid}
    assert read.count("cgroup.procs") == 3, "as it is new, and twice in turn"
    node.plain.add(node.container(BATCH))
    node.process(node.container(BATCH), 1001, PROGRAM)
    assert not node.watch.exempt(pods, RULES, 2 * LIST_AGAIN_S)


def test_a_pod_that_works_where_its_sandbox_should_sleep_has_its_budget_and_no_more(node: Starting) -> None:
    node.kubelet_makes(BATCH)
    pods = [BATCH]
    assert node.watch.exempt(pods, RULES, 0.0) == {BATCH.uid}
    node.uses(BATCH, RULES.each_cpu_s + 1)
    later_s = [look * LIST_AGAIN_S / 10 for look in range(1, 12)]
    assert not [node.watch.exempt(pods, RULES, now_s) for now_s in later_s][-1]


def test_an_empty_group_is_looked_into_until_somebody_is_in_it(node: Starting) -> None:
    node.kubelet_makes(BATCH)
    node.plain.add(node.container(BATCH))
    pods = [BATCH]
    assert node.watch.exempt(pods, RULES, 0.0) == {BATCH.uid}
    node.process(node.container(BATCH), 1001, PROGRAM)
    assert not node.watch.exempt(pods, RULES, 0.1)


def test_a_new_list_of_pods_that_names_a_waiting_pods_container_ends_its_wait(node: Starting) -> None:
    node.kubelet_makes(BATCH)
    without_sandbox = BATCH.model_copy(update={"containers": (Container(name="main", id=f"containerd://{SANDBOX}"),)})
    assert node.watch.exempt([BATCH], RULES, 0.0) == {BATCH.uid}
    assert not node.watch.exempt([without_sandbox], RULES, 0.1), "the one group that there is is the container's"
