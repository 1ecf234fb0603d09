"""What the sources read from small golden trees of both cgroup versions."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from fixture_types import NewPod
from kernel_trees import GIB, KernelTree, put
from pydantic import BaseModel

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.targets import LocalTargets
from services.metrics.adapters.tripwire import HostTripwire
from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import GROUPS, NODE, TENANTS, Kind, Target
from services.metrics.core.figures.values import CpuTicks
from services.metrics.core.source import Source
from services.metrics.registry import known_sources
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.hostfs import KeptFiles
from shared.contracts.pod import Pod
from shared.contracts.sample import ContainerReading, GroupNuma, NodeReading, NumaReading, PoolReading, Pressure

SHARED = "sublet/shared_cores"
PAGE = os.sysconf("SC_PAGE_SIZE")
TYPED: dict[Kind, type[BaseModel]] = {
    "node": NodeReading,
    "numa": NumaReading,
    "pool": PoolReading,
    "container": ContainerReading,
}
RESERVED = {"name", "pool", "numa", "extra"}


def container(pod: Pod) -> Target:
    """The target of a pod's container "main"."""
    return Target("container", f"{pod.uid}/main", f"{SHARED}/pod{pod.uid}/main", "share")


def test_the_node_is_read_in_full(tree: KernelTree, collector: Collector) -> None:
    raw = collector.collect([]).readings[NODE].raw
    assert raw == {
        "online_cpus": "0-3",
        "cpu_busy_ticks": 1000 + 10 + 30 + 5 + 15,
        "cpu_all_ticks": 1000 + 10 + 30 + 900000 + 700 + 5 + 15 + 40,
        "cpu_steal_ticks": 40,
        "cpu_ticks": CpuTicks((0, 1, 2, 3), (1 + 2 + 3 + 6 + 7,) * 4, (19 + 4 + 5 + 8,) * 4),
        "runnable_tasks": 3,
        "load1": 1.25,
        "load5": 0.75,
        "memory_total_bytes": 4 * GIB,
        "memory_free_bytes": 2 * GIB,
        "memory_available_bytes": 2 * GIB,
        "watermark_scale_factor": 10,
        "kswapd_steal_pages": 5,
        "direct_steal_pages": 77,
        "refault_pages": 43,
        "sched_wait_ns": 400,
        "network_received_bytes": 1000 + 5,
        "network_sent_bytes": 2000 + 6,
        "disk_read_bytes": (10 + 2) * 512,
        "disk_written_bytes": (30 + 3) * 512,
        **{
            f"{name}_pressure": Pressure(some_avg10_percent=1.5, some_avg60_percent=2.25, full_avg10_percent=0.5)
            for name in ("cpu", "memory", "io")
        },
    }


def test_every_numa_node_is_read(tree: KernelTree, collector: Collector) -> None:
    tree.numa_memory(1, free=3 << 20, total=GIB, inactive_file=5 << 20)
    readings = collector.collect([]).readings
    assert readings[Target("numa", "1")].raw == {
        "cpus": "1,3",
        "memory_total_bytes": GIB,
        "memory_free_bytes": 3 << 20,
        "inactive_file_bytes": 5 << 20,
        "file_bytes": 10 << 20,
        "active_file_bytes": 3 << 20,
        "slab_reclaimable_bytes": 2 << 20,
        "watermark_min_bytes": 1 * PAGE,
        "watermark_low_bytes": 2 * PAGE,
        "watermark_high_bytes": 3 * PAGE,
        "socket": 1,
    }
    assert readings[Target("numa", "0")].raw["watermark_low_bytes"] == (45 + 200) * PAGE, "summed over the zones"


def test_a_container_is_read_in_full(tree: KernelTree, collector: Collector, make_pod: NewPod) -> None:
    pod = make_pod("web")
    group = f"{SHARED}/pod{pod.uid}/main"
    tids = tree.tasks("RDSRZ")
    tree.group(group, usage_ns=7_000_000_000, system_ns=2_340_000_000, periods=40, throttled=10, memory=100, rss=60,
               cache=30, inactive_file=20, refaults=7, memory_limit=GIB, cpu_quota_us=150_000,
               tids=[*tids, 99_999])  # fmt: skip
    raw = collector.collect([pod]).readings[container(pod)].raw
    pressures = {name: raw.pop(f"{name}_pressure", None) for name in ("cpu", "memory", "io")}
    assert raw == {
        "cpu_usage_ns": 7_000_000_000,
        "cpu_sys_ns": 2_340_000_000,
        "nr_periods": 40,
        "nr_throttled": 10,
        "throttled_ns": 100_000,
        "memory_usage_bytes": 100,
        "memory_rss_bytes": 60,
        "memory_cache_bytes": 30,
        "memory_shmem_bytes": 4096,
        "memory_working_set_bytes": 80,
        "memory_numa": (
            GroupNuma(numa=0, anon_bytes=24576, file_bytes=16384),
            GroupNuma(numa=1, anon_bytes=49152, file_bytes=32768),
        ),
        "refault_pages": 9,
        "memory_limit_bytes": GIB,
        "cpu_limit_cores": 1.5,
        "disk_read_bytes": 4096,
        "disk_written_bytes": 8192,
        "runnable_tasks": 2,
        "loaded_tasks": 3,
        "sched_wait_ns": 0,
    }
    stalls = Pressure(some_avg10_percent=3, some_avg60_percent=4, full_avg10_percent=1) if tree.version == 2 else None
    assert pressures == dict.fromkeys(("cpu", "memory", "io"), stalls)


@pytest.mark.parametrize(
    ("package", "socket"),
    [
        pytest.param("7\n", 7, id="its first CPU's package"),
        pytest.param("-1\n", None, id="the kernel does not know it"),
        pytest.param(None, None, id="no such file"),
    ],
)
def test_a_numa_node_says_its_socket_where_that_is_known(
    tree: KernelTree, collector: Collector, package: str | None, socket: int | None
) -> None:
    path = tree.root / "sys/devices/system/cpu/cpu1/topology/physical_package_id"
    path.unlink() if package is None else path.write_text(package)
    collected = collector.collect([])
    assert collected.readings[Target("numa", "1")].raw.get("socket") == socket
    assert collected.failures == {}


def test_a_container_without_limits_has_none(tree: KernelTree, collector: Collector, make_pod: NewPod) -> None:
    pod = make_pod("web")
    tree.group(container(pod).group)
    raw = collector.collect([pod]).readings[container(pod)].raw
    assert raw["memory_usage_bytes"] == 100 << 20
    assert not {"cpu_limit_cores", "memory_limit_bytes"} & raw.keys()


def test_the_tasks_of_groups_below_a_container_are_its_own(
    tree: KernelTree, collector: Collector, make_pod: NewPod
) -> None:
    pod = make_pod("web")
    tree.group(f"{container(pod).group}/nested/deeper", tids=tree.tasks("RD"))
    tree.group(container(pod).group, tids=tree.tasks("RS"))
    raw = collector.collect([pod]).readings[container(pod)].raw
    assert (raw["runnable_tasks"], raw["loaded_tasks"]) == (2, 3)


def _over_time(tree: KernelTree, moments_s: Iterable[float]) -> Collector:
    """The real sources; the first pass is at the first of these moments, and so on, until the last one."""
    clock = iter(moments_s)
    passes = {"s": 0.0}

    def targets(pods: Sequence[Pod]) -> Sequence[Target]:
        passes["s"] = next(clock)
        return found(pods)

    found = LocalTargets(tree.root)
    return Collector(HostReader(tree.root, Cgroups(tree.root)), known_sources(), targets, lambda: passes["s"])


@pytest.mark.parametrize("gap_s", [2.0, 1.0])
def test_of_very_many_tasks_some_are_looked_at_and_count_for_all(
    tree: KernelTree, make_pod: NewPod, monkeypatch: pytest.MonkeyPatch, gap_s: float
) -> None:
    """Those that are read move on with each reading: by passes, every one behind a pause would meet the same tasks."""
    monkeypatch.setattr("services.metrics.adapters.host.MOST_TASKS", 0)  # four tasks of each container at least
    pod, tids, seen = make_pod("web"), tree.tasks("RSSSRSSSRSSSRSSS"), dict[object, int]()
    passes = round(72 / gap_s)
    collector = _over_time(tree, (gap_s * number for number in range(passes)))
    for number in range(passes):
        tree.group(container(pod).group, usage_ns=number * 10**8, tids=tids)
        reading = collector.collect([pod]).readings[container(pod)].sources["task_load"]
        seen[reading.at_s] = reading.raw["runnable_tasks"]  # type: ignore[assignment]
    counts = list(seen.values())
    assert 8 <= len(counts) < passes, "each reading once, with pauses between them"
    assert all(sorted(counts[first : first + 4]) == [0, 0, 0, 16] for first in range(len(counts) - 3))


@pytest.mark.parametrize(
    ("of_another_namespace", "readings"),
    [pytest.param(False, range(2, 8), id="tasks tell"), pytest.param(True, [12], id="no task can be asked")],
)
def test_pressure_of_a_container_knows_no_pause_where_nobody_counts_its_waiting_tasks(
    tree: KernelTree, make_pod: NewPod, of_another_namespace: bool, readings: Sequence[int]
) -> None:
    if of_another_namespace:
        (tree.root / "proc/self").symlink_to(f"{os.getpid() + 1}")
    pod, tids, seen = make_pod("web"), tree.tasks("R"), set[float]()
    collector = _over_time(tree, (2.0 * number for number in range(12)))
    for number in range(12):
        tree.group(container(pod).group, usage_ns=number * 10**8, tids=tids)
        seen.add(collector.collect([pod]).readings[container(pod)].sources["pressure"].at_s)
    assert len(seen) in readings


def test_waiting_is_summed_over_tasks_that_come_and_go(tree: KernelTree, make_pod: NewPod) -> None:
    collector = _over_time(tree, (2.0 * number for number in range(9)))
    pod = make_pod("web")
    first, second, third = tree.tasks("SSS")

    def waited(tids: list[int], usage_ns: int) -> float:
        tree.group(container(pod).group, tids=tids, usage_ns=usage_ns)
        found = collector.collect([pod], whole=True).readings[container(pod)].raw["sched_wait_ns"]
        assert isinstance(found, int | float)
        return round(found, 3)

    assert waited([first, second], 1) == 0
    tree.task_waited(first, 1000 + first + 50)
    assert waited([first, second], 10**8) == 50
    tree.task_waited(second, 1000 + second + 7)
    tree.task_waited(third, 10**9)  # it waited in another cgroup, before it was moved here
    assert waited([second, third], 2 * 10**8) == 57
    tree.task_waited(third, 10**9 + 3)
    assert waited([third], 3 * 10**8) == 60


def test_pools_and_containers_have_pressure_of_their_own_on_v2_only(tree: KernelTree, collector: Collector) -> None:
    tree.group(SHARED)
    raw = collector.collect([]).readings[TENANTS].raw
    wanted = {"cpu_pressure", "memory_pressure", "io_pressure"} if tree.version == 2 else set()
    assert {name for name in raw if name.endswith("_pressure")} == wanted
    if wanted:
        assert raw["cpu_pressure"] == Pressure(some_avg10_percent=3, some_avg60_percent=4, full_avg10_percent=1)


def test_a_cgroup_that_does_not_exist_has_no_reading(tree: KernelTree, collector: Collector, make_pod: NewPod) -> None:
    collected = collector.collect([make_pod("web")])
    assert {target.kind for target in collected.readings} == {"node", "numa"}
    assert not collected.failures


def test_a_cgroup_made_anew_has_another_identity(tree: KernelTree, collector: Collector, tmp_path: Path) -> None:
    tree.group(SHARED)
    first = collector.collect([]).readings[TENANTS].identity
    usage_folder = tree.folder(SHARED, "cpuacct")
    usage_folder.rename(tmp_path / "kept")  # so that its inode cannot be given out again
    tree.group(SHARED)
    assert collector.collect([]).readings[TENANTS].identity != first


def test_missing_files_leave_figures_absent_and_nothing_fails(tree: KernelTree, collector: Collector) -> None:
    tree.group(SHARED)
    for folder in {tree.folder(SHARED, c) for c in ("cpu", "cpuacct", "memory")}:
        for file in folder.iterdir():
            file.unlink() if file.is_file() else None
    for name in ("proc/loadavg", "proc/vmstat", "proc/meminfo", "proc/sys/vm/watermark_scale_factor"):
        (tree.root / name).unlink()
    collected = collector.collect([])
    assert collected.readings[TENANTS].raw == {}
    assert collected.readings[NODE].raw.keys().isdisjoint({"load1", "memory_free_bytes", "kswapd_steal_pages"})
    assert not collected.failures


def test_what_the_tasks_of_a_container_do_is_not_known_from_another_pid_namespace(
    tree: KernelTree, make_pod: NewPod
) -> None:
    pod = make_pod("web")
    tree.group(f"{SHARED}/pod{pod.uid}/main", tids=tree.tasks("RRR"))
    (tree.root / "proc/self").symlink_to(f"{os.getpid() + 1}")
    collector = Collector(
        HostReader(tree.root, Cgroups(tree.root)), known_sources(), LocalTargets(tree.root), lambda: 0.0
    )
    raw = collector.collect([pod]).readings[container(pod)].raw
    assert raw.keys().isdisjoint({"runnable_tasks", "loaded_tasks", "sched_wait_ns"})
    assert "cpu_usage_ns" in raw


def test_a_garbled_file_spoils_its_own_source_only_and_is_named(tree: KernelTree, collector: Collector) -> None:
    put(tree.root / "proc/loadavg", "soon\n")
    collected = collector.collect([])
    assert list(collected.failures) == ["node_load"]
    assert "memory_free_bytes" in collected.readings[NODE].raw
    assert "load1" not in collected.readings[NODE].raw


def test_online_cpus_come_from_proc_stat_where_sysfs_is_silent(tree: KernelTree, collector: Collector) -> None:
    (tree.root / "sys/devices/system/cpu/online").unlink()
    assert collector.collect([]).readings[NODE].raw["online_cpus"] == "0-3"


def test_kswapd_is_summed_over_the_zones_of_old_kernels(tree: KernelTree, collector: Collector) -> None:
    put(tree.root / "proc/vmstat", "pgsteal_kswapd_dma 1\npgsteal_kswapd_normal 41\npgsteal_direct_normal 9\n")
    assert collector.collect([]).readings[NODE].raw["kswapd_steal_pages"] == 42


def test_every_file_is_read_once_a_pass(
    tree: KernelTree, collector: Collector, make_pod: NewPod, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = make_pod("web")
    tree.group(f"{SHARED}/pod{pod.uid}/main", tids=tree.tasks("RR"))
    opened: list[str] = []
    whole = KeptFiles.read

    def read(files: KeptFiles, path: str) -> str | None:
        opened.append(path)
        return whole(files, path)

    monkeypatch.setattr(KeptFiles, "read", read)
    collector.collect([pod])
    assert len(opened) == len(set(opened)) > 10
    once = len(opened)
    collector.collect([pod])
    assert len(opened) <= 2 * once
    assert len(opened[once:]) == len(set(opened[once:]))


def test_a_link_in_the_cgroup_tree_is_not_followed(
    tree: KernelTree, collector: Collector, make_pod: NewPod, tmp_path: Path
) -> None:
    pod = make_pod("web")
    tree.group(SHARED)
    outside = tmp_path / "outside"
    put(outside / "main/cpuacct.usage", "1\n")
    tree.folder(SHARED, "cpuacct").joinpath(f"pod{pod.uid}").symlink_to(outside)
    collected = collector.collect([pod])
    assert not [target for target in collected.readings if target.kind == "container"]
    assert "symbolic link" in collected.failures["cgroup"]


def test_the_tripwire_sees_what_a_pass_sees(tree: KernelTree, collector: Collector) -> None:
    tree.group(SHARED, usage_ns=123_456_000)
    tree.node(free=77 << 20)
    assert HostTripwire(tree.root, Cgroups(tree.root)).probe() == (123_456_000, 77 << 20)
    assert collector.collect([]).readings[TENANTS].raw["cpu_usage_ns"] == 123_456_000


def test_the_tripwire_sees_nothing_where_nothing_is(tmp_path: Path) -> None:
    empty = KernelTree(tmp_path, 1)
    assert HostTripwire(tmp_path, Cgroups(tmp_path)).probe() == (None, None)
    empty.group(SHARED)
    (empty.folder(SHARED, "cpuacct") / "cpuacct.usage").write_text("many\n")
    assert HostTripwire(tmp_path, Cgroups(tmp_path)).probe() == (None, None)


@pytest.mark.parametrize("name", known_sources())
def test_every_source_offers_what_it_names(name: str, tree: KernelTree, collector: Collector, make_pod: NewPod) -> None:
    """A law over the folder: a new source is tested before its author writes a test."""
    source = known_sources()[name]
    pod = make_pod("web")
    tree.group(f"{SHARED}/pod{pod.uid}/main", tids=tree.tasks("R"))
    assert source.figures, f"source {name} offers nothing"
    for kind, figures in source.figures.items():
        assert not RESERVED & {figure.name for figure in figures}
        gauges = {figure.name for figure in figures if isinstance(figure, Gauge)}
        for target in (t for t in collector.collect([pod]).readings if t.kind == kind):
            raw = collector.collect([pod]).readings[target].raw
            known = {n: raw[n] for n in gauges & TYPED[kind].model_fields.keys() if n in raw}
            TYPED[kind].model_validate(
                {"online_cpus": "0", "numa": 0, "pool": "p", "name": "n", **known}
            )  # figures fit their typed fields


def test_what_a_gate_watches_is_read_in_every_pass(tree: KernelTree, collector: Collector, make_pod: NewPod) -> None:
    """A law over the folder: a gate that watches what is itself behind one would never open."""
    pod = make_pod("web")
    tree.group(container(pod).group)
    always = {name: source for name, source in known_sources().items() if not source.gates}
    reader = Collector(HostReader(tree.root, Cgroups(tree.root)), always, LocalTargets(tree.root), lambda: 0.0)
    readings = reader.collect([pod]).readings
    for name, source in known_sources().items():
        for kind, gate in source.gates.items():
            assert 0 < gate.every_s <= 60, f"source {name}: figures of {gate.every_s} s are of no use to anybody"
            for target in (target for target in readings if target.kind == kind):
                assert {move.name for move in gate.moved} <= readings[target].raw.keys(), name


def test_a_new_source_adds_its_figures_with_no_other_edit(tree: KernelTree) -> None:
    from services.metrics.core.figures.results import LastPass
    from services.metrics.core.sample.summary import summarise

    temperature = Source({"node": (Gauge("temperature_celsius"),)}, lambda host, target: {"temperature_celsius": 41.5})
    host = HostReader(tree.root, Cgroups(tree.root))
    found = known_sources() | {"temperature": temperature}
    collector = Collector(host, found, LocalTargets(tree.root), lambda: 0.0)
    fields, _ = summarise(LastPass(), collector.collect([]).readings, collector.offered, [], 0.0)
    assert fields["node_reading"].extra == {"temperature_celsius": 41.5}


def test_two_sources_may_not_offer_the_same_figure(tree: KernelTree) -> None:
    twin = Source(dict.fromkeys(GROUPS, (Gauge("memory_rss_bytes"),)), lambda host, target: {})
    with pytest.raises(ValueError, match=r"twin.*memory_rss_bytes"):
        Collector(
            HostReader(tree.root, Cgroups(tree.root)), known_sources() | {"twin": twin}, lambda pods: [], lambda: 0.0
        )
