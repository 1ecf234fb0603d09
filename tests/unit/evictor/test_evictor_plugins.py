"""Which plugins there are, and what the two that are on do with a sample."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from evictor_world import CPU_LOAD, GIB, MEMORY, RECLAIMED, TOTAL_BYTES, pod, reading, sample_fields

from services.evictor import plugins as plugin_folder
from services.evictor.core.plugin import Plugin, PluginSettings, Pressure, View
from services.evictor.registry import plugins_in
from services.evictor.settings import read
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.contracts.sample import NodeReading, NodeSample, NumaReading, PodReading

PLUGINS = plugins_in(plugin_folder)
ENVELOPE = {"node": "node1", "boot_id": "0" * 8, "sent_at": datetime(2026, 1, 1, tzinfo=UTC)}


def view(readings: list[PodReading], t_s: float = 0.0, reclaimed: dict[str, int] | None = None, **sample: Any) -> View:
    return View(t_s, NodeSample(**ENVELOPE, seq=1, **sample_fields(readings, **sample)), reclaimed)


def under_pressure(readings: list[PodReading], t_s: float = 0.0) -> View:
    """A moment at which every plugin sees pressure, as long as reclaimed pods ask for something."""
    return view(readings, t_s, {RECLAIMED_CPU: 0, RECLAIMED_MEMORY: 0}, free_bytes=0)


def pressed(plugin: Plugin[Any, Any, Any], shown: View) -> Pressure | None:
    """The pressure after enough samples that it reaches everybody it may reach."""
    state, finding, settings = plugin.start(), None, plugin.settings()
    for step in range(20):
        state, finding = plugin.evaluate(state, replace(shown, t_s=10.0 * step), settings)
    return finding if isinstance(finding, Pressure) else None


FILES = {
    "cpu_load": CPU_LOAD,
    "cpu_satisfaction": "cpu-satisfaction-eviction-plugin",
    "cpu_suppression": "cpu-pressure-suppression-plugin",
    "memory_pressure": MEMORY,
    "memory_usage": "memory-usage-eviction-plugin",
    "network_interface": "network-eviction-plugin",
    "numa_cpu_pressure": "numa-cpu-pressure-plugin",
    "numa_memory_pressure": "numa-memory-pressure-eviction-plugin",
    "numa_sys_cpu_pressure": "numa-sys-cpu-pressure-plugin",
    "reclaimed_allocatable": "reclaimed-allocatable-eviction-plugin",
    "reclaimed_numa_overcommit": "reclaimed-numa-resource-pressure-eviction-plugin",
    "reclaimed_overcommit": RECLAIMED,
    "rootfs_overuse": "rootfs-overuse-eviction-plugin",
    "rootfs_pressure": "rootfs-pressure-eviction-plugin",
    "rss_overuse": "rss-overuse-eviction-plugin",
    "system_memory_pressure": "system-memory-pressure-eviction-plugin",
    "template": "template-eviction-plugin",
}


def test_all_plugins_are_found_by_scanning_the_folder_and_the_tutorials_three_are_on() -> None:
    assert {file: PLUGINS[file].name for file in FILES} == FILES
    assert list(read({})[1]) == [CPU_LOAD, MEMORY, RECLAIMED]
    switched = read({"plugins": {"rss_overuse": {"enabled": True}, "cpu_load": {"enabled": False}}})[1]
    assert list(switched) == [MEMORY, RECLAIMED, FILES["rss_overuse"]]


OVERCOMMIT, SHORTAGE = PLUGINS["reclaimed_overcommit"], PLUGINS["memory_pressure"]


def test_overcommit_does_not_count_a_pod_that_is_on_its_way_out() -> None:
    asking = [reading(pod("a", cpu=3000)), reading(pod("b", cpu=3000, terminating=True))]
    shown = view(asking, reclaimed={RECLAIMED_CPU: 1000, RECLAIMED_MEMORY: 1})
    assert OVERCOMMIT.evaluate(None, shown, OVERCOMMIT.settings())[1] == "calm"


def test_overcommit_ranks_only_pods_that_ask_for_the_scarce_resource() -> None:
    asking = [reading(pod("a", cpu=9000)), reading(pod("b", memory=9)), reading(pod("c", cpu=9001))]
    shown = view(asking, reclaimed={RECLAIMED_CPU: 1000, RECLAIMED_MEMORY: 9})
    _, pressure = OVERCOMMIT.evaluate(None, shown, OVERCOMMIT.settings())
    assert [c.pod.name for c in OVERCOMMIT.rank(shown, pressure, OVERCOMMIT.settings())] == ["c", "a"]


def test_a_pod_and_its_terminating_namesake_are_two() -> None:
    old, new = pod("a", cpu=3000, uid="aa", terminating=True), pod("a", cpu=9000, uid="bb")
    shown = under_pressure([reading(old), reading(new)])
    for plugin in (OVERCOMMIT, SHORTAGE):
        uids = [c.pod.uid for c in plugin.rank(shown, pressed(plugin, shown), plugin.settings())]
        assert "bb" in uids
        assert len(uids) == len(set(uids))


def look(settings: PluginSettings, moments: Sequence[tuple[float, int | None]]) -> list[Any]:
    """What the memory plugin says at each (time, free bytes)."""
    state, findings = SHORTAGE.start(), []
    for t_s, free in moments:
        shown = view([reading(pod("a"))], t_s, free_bytes=free)
        state, finding = SHORTAGE.evaluate(state, shown, settings)
        findings.append(finding)
    return findings


def actions(findings: list[Any]) -> list[str]:
    return [f if isinstance(f, str) else f.actions.numa_actions["0"] for f in findings]


def test_shortage_is_seen_at_once_but_escalates_by_periods_however_many_samples_come() -> None:
    every_second = [(float(t), 0) for t in range(18)]
    assert actions(look(SHORTAGE.settings(), every_second)) == ["reclaimed"] * 15 + ["all"] * 3
    burst = [(t / 100, 0) for t in range(400)]
    assert set(actions(look(SHORTAGE.settings(), burst))) == {"reclaimed"}


def test_a_moment_above_the_watermark_between_two_periods_starts_a_new_row() -> None:
    dips = [(float(t), 50 * GIB if t == 12 else 0) for t in range(31)]
    said = actions(look(SHORTAGE.settings(), dips))
    assert said[12] == "calm"
    assert said[13:] == ["reclaimed"] * 17 + ["all"]  # counted anew at 15, 20, 25 and 30 s


def test_a_long_silence_starts_a_new_row() -> None:
    before = [(float(t), 0) for t in (0, 5, 10)]
    assert actions(look(SHORTAGE.settings(), [*before, (15.0, 0)]))[-1] == "all"
    assert actions(look(SHORTAGE.settings(), [*before, (30.0, 0)]))[-1] == "reclaimed"
    assert actions(look(SHORTAGE.settings(), [*before, (11.0, None), (15.0, 0)]))[-2:] == ["unknown", "reclaimed"]


def test_rows_go_on_while_the_node_rests_however_short_the_period() -> None:
    seldom = [(4.0 * step, 0) for step in range(4)]
    assert actions(look(SHORTAGE.settings(period_s=1.0), seldom))[-1] == "all"
    assert (
        actions(look(SHORTAGE.settings(period_s=1.0), [(1.5 * t_s, free) for t_s, free in seldom]))[-1] == "reclaimed"
    )


def test_a_configured_minimum_of_free_memory_counts_where_it_is_more_than_the_watermark() -> None:
    settings = SHORTAGE.settings(minimum_free_bytes=5 * GIB)
    low, enough = look(settings, [(0.0, 5 * GIB - 1), (1.0, 5 * GIB)])
    assert (low.observed, low.threshold) == (5 * GIB - 1, 5 * GIB)
    assert low.condition == "MemoryPressure/NoSchedule"
    assert enough == "calm"
    assert look(SHORTAGE.settings(), [(0.0, 5 * GIB - 1)]) == ["calm"]


def test_a_busy_kswapd_is_judged_by_the_time_that_really_passed() -> None:
    state, said = SHORTAGE.start(), []
    for step in range(8):
        t_s = 6.0 * step  # a little late every time
        node = NodeReading(
            online_cpus="0",
            memory_total_bytes=TOTAL_BYTES,
            memory_free_bytes=50 * GIB,
            watermark_scale_factor=100,
            kswapd_steal_pages=11_000 * step,  # 2000 pages/s would be 12 000
        )
        numas = (NumaReading(numa=0, memory_total_bytes=TOTAL_BYTES, memory_free_bytes=50 * GIB),)
        shown = View(t_s, NodeSample(**ENVELOPE, seq=1, node_reading=node, numas=numas))
        state, finding = SHORTAGE.evaluate(state, shown, SHORTAGE.settings())
        said.append(finding)
    assert set(said) == {"calm"}
