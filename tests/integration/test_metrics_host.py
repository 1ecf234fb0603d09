"""Metrics on the kernel of this host: real counters, real tasks, real pressure files."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Until
from present import present

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.pressure_triggers import PressureTriggers
from services.metrics.adapters.targets import LocalTargets
from services.metrics.core.figures.results import LastPass
from services.metrics.core.figures.target import NODE, Target
from services.metrics.core.sample.summary import summarise
from services.metrics.main import PLAN
from services.metrics.registry import known_sources
from shared.adapters.clock import SystemClock
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.sysfs import read_topology
from shared.app import Context
from shared.contracts.bus.subjects import state_subject
from shared.contracts.sample import NodeSample
from shared.errors import Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.settings import CommonSettings
from shared.wire import Wire

ROOT = Path("/")
V2_TOPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
# It takes memory all the time: what it took before it came into a group is not that group's.
BURN = [sys.executable, "-c", "while True: kept = b'x' * (1 << 20)"]

needs_cgroups = pytest.mark.skipif(
    not any(Path("/sys/fs/cgroup", name).exists() for name in ("cpuset", "cgroup.controllers")),
    reason="no cgroups on this host",
)
needs_pressure = pytest.mark.skipif(not Path("/proc/pressure/cpu").exists(), reason="no pressure files on this host")


@pytest.fixture
def group() -> Iterator[str]:
    """A top cgroup of a name that nobody else has, with one below it; both are removed with what runs in them."""
    try:
        cgroups = Cgroups(ROOT)
        top = f"sublettest{uuid.uuid4().hex[:12]}"
        cgroups.make(f"{top}/leaf")
    except (OSError, Unavailable) as error:
        pytest.skip(f"cannot make cgroups here: {error}")
    try:
        yield top
    finally:
        cgroups.remove(top)


@contextlib.contextmanager
def burning(group: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that burns one CPU in a cgroup."""
    process = subprocess.Popen(BURN)
    try:
        Cgroups(ROOT).attach(group, process.pid)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
async def test_a_process_that_burns_a_cpu_is_seen_in_its_cgroup_and_the_one_above(group: str, until: Until) -> None:
    leaf, pool = Target("container", "aa/leaf", f"{group}/leaf", "share"), Target("pool", "share", group)
    collector = Collector(
        HostReader(ROOT, Cgroups(ROOT)), known_sources(), lambda pods: [NODE, pool, leaf], time.monotonic
    )
    memory, found = LastPass(), {}

    def measure() -> dict[str, Any]:
        nonlocal memory
        collected = collector.collect([])
        assert not collected.failures
        fields, memory = summarise(memory, collected.readings, collector.offered, [], time.monotonic())
        return {"fields": fields, "leaf": collected.readings[leaf].raw}

    with burning(f"{group}/leaf"):

        def busy() -> bool:
            found.update(measure())
            share = found["fields"]["pools"][0]
            return (share.cpu_usage_cores or 0) > 0.2 and (share.load1 or 0) > 0 and share.runnable_tasks == 1

        await until(busy)
    share = found["fields"]["pools"][0]
    assert share.cpu_usage_cores < 1.5
    assert share.memory_working_set_bytes <= share.memory_usage_bytes
    assert None not in (share.memory_rss_bytes, share.memory_cache_bytes)
    assert found["leaf"]["runnable_tasks"] == 1
    assert found["leaf"]["cpu_usage_ns"] > 0


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_cgroup_that_is_removed_has_no_reading_and_a_new_one_another_identity(group: str) -> None:
    cgroups, leaf = Cgroups(ROOT), Target("container", "aa/leaf", f"{group}/leaf")
    collector = Collector(HostReader(ROOT, cgroups), known_sources(), lambda pods: [leaf], time.monotonic)
    before = collector.collect([]).readings[leaf].identity
    cgroups.remove(leaf.group)
    assert collector.collect([]).readings == {}
    cgroups.make(leaf.group)
    assert collector.collect([]).readings[leaf].identity != before


@needs_cgroups
def test_this_node_is_read_without_a_failure() -> None:
    collector = Collector(HostReader(ROOT, Cgroups(ROOT)), known_sources(), LocalTargets(ROOT), time.monotonic)
    collected = collector.collect([])
    assert not collected.failures
    node = summarise(LastPass(), collected.readings, collector.offered, [], 0.0)[0]["node_reading"]
    assert node.memory_total_bytes > node.memory_free_bytes > 0
    assert None not in (node.load1, node.load5, node.runnable_tasks, node.watermark_scale_factor)
    assert node.kswapd_steal_pages is not None
    assert 0 < node.extra["rootfs_available_bytes"] <= node.extra["rootfs_capacity_bytes"]
    assert not [name for name in node.extra if not name.startswith(("rootfs_", "nic_"))]


@needs_cgroups
@needs_pressure
def test_this_nodes_pressure_is_read() -> None:
    collector = Collector(HostReader(ROOT, Cgroups(ROOT)), known_sources(), LocalTargets(ROOT), time.monotonic)
    raw = collector.collect([]).readings[NODE].raw
    assert 0 <= raw["cpu_pressure"].some_avg10_percent <= 100
    assert {"memory_pressure", "io_pressure"} <= raw.keys()


def test_this_machines_topology_is_read() -> None:
    topology = read_topology(ROOT)
    assert len(topology.all) == os.cpu_count()
    assert sum(len(cpus) for cpus in topology.numas.values()) == len(topology.all)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@needs_pressure
async def test_the_kernel_wakes_us_when_tasks_stall(until: Until) -> None:
    woken = asyncio.Event()
    alarm = PressureTriggers(["/proc/pressure/cpu"])
    processes = []
    try:
        alarm.arm(woken.set)
        if not alarm.armed:
            pytest.skip("this kernel takes no pressure trigger from us")
        processes += [subprocess.Popen(BURN) for _ in range(2 * (os.cpu_count() or 1))]
        await until(woken.is_set)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        alarm.close()
    assert alarm.armed == []


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@needs_pressure
async def test_a_pressure_file_is_armed_once_it_exists_and_another_file_is_let_be(tmp_path: Path) -> None:
    later, plain = tmp_path / "cpu.pressure", tmp_path / "plain"
    plain.write_text("")
    alarm = PressureTriggers([str(later), str(plain)])
    try:
        alarm.arm(lambda: None)
        assert alarm.armed == []
        later.symlink_to("/proc/pressure/cpu")
        alarm.arm(lambda: None)
        if not alarm.armed:
            pytest.skip("this kernel takes no pressure trigger from us")
        assert alarm.armed == [str(later)]
    finally:
        alarm.close()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.skipif(not any((top / "cgroup.pressure").exists() for top in V2_TOPS), reason="no pressure by cgroup")
async def test_a_removed_cgroup_is_let_go_and_a_new_one_of_its_name_is_armed_again(until: Until) -> None:
    top = next(top for top in V2_TOPS if (top / "cgroup.pressure").exists())
    folder, wakes = top / f"sublettest{uuid.uuid4().hex[:12]}", []
    alarm = PressureTriggers([str(folder / "cpu.pressure")])
    try:
        folder.mkdir()
        alarm.arm(lambda: wakes.append(1))
        if not alarm.armed:
            pytest.skip("this kernel takes no pressure trigger from us")
        folder.rmdir()
        await until(lambda: not alarm.armed)
        alarm.arm(lambda: wakes.append(1))
        assert alarm.armed == []
        folder.mkdir()
        alarm.arm(lambda: wakes.append(1))
        assert alarm.armed == [str(folder / "cpu.pressure")]
        assert len(wakes) == 1
    finally:
        alarm.close()
        if folder.exists():
            folder.rmdir()


async def test_an_alarm_without_files_holds_nothing_open() -> None:
    alarm = PressureTriggers([])
    alarm.arm(lambda: None)
    assert alarm.armed == []
    alarm.close()


@needs_cgroups
async def test_the_service_as_wired_publishes_samples_of_this_host(tmp_path: Path, until: Until) -> None:
    clock, bus, samples = SystemClock(), MemoryBus(clock=SystemClock()), []
    wire = Wire(bus, clock, node="node1", service="metrics")
    common = CommonSettings(node="node1", state_dir=tmp_path)
    await bus.subscribe(state_subject(NodeSample, "node1"), lambda m: samples.append(NodeSample.decode(m.data)))
    app = PLAN.build(Context(wire, clock, common, {"metrics": {"period_s": 0.2}}))
    task = asyncio.create_task(app.run())
    try:
        await until(lambda: len(samples) >= 3)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await app.close()
    assert samples[0].trigger == samples[1].trigger == "start"
    assert present(samples[1].window_s) > 0
    assert samples[1].node_reading.cpu_usage_cores is not None
    assert app.health().ok


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
async def test_an_application_outside_of_pods_is_measured_and_one_that_is_gone_is_said(
    group: str, tmp_path: Path, until: Until
) -> None:
    clock, bus, samples = SystemClock(), MemoryBus(clock=SystemClock()), []
    wire = Wire(bus, clock, node="node1", service="metrics")
    named = [{"name": "burner", "path": f"{group}/leaf"}, {"name": "gone", "path": f"{group}/none"}]
    await bus.subscribe(state_subject(NodeSample, "node1"), lambda m: samples.append(NodeSample.decode(m.data)))
    settings = {"metrics": {"period_s": 0.5, "host_applications": named}}
    app = PLAN.build(Context(wire, clock, CommonSettings(node="node1", state_dir=tmp_path), settings))
    with burning(f"{group}/leaf"):
        task = asyncio.create_task(app.run())
        try:
            await until(lambda: bool(samples) and (samples[-1].host_applications[0].cpu_usage_cores or 0) > 0.1)
            # Figures of memory take turns: the first ones may be of the moment before the process came into the group.
            await until(lambda: (samples[-1].host_applications[0].memory_used_bytes or 0) > 0)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await app.close()
    burner, gone = samples[-1].host_applications
    assert present(burner.cpu_usage_cores) < 1.5
    assert present(burner.memory_used_bytes) > 0
    assert (gone.cpu_usage_cores, gone.memory_used_bytes) == (None, None)
    assert f"no cgroup {group}/none on this node" in gone.unmeasured
