"""How often a workload was evicted: counted out of the ledger, and weighed when a victim is chosen."""

from dataclasses import replace
from typing import Any

from evictor_world import MakeNode, pod
from fixture_types import Virtual
from plugin_world import PLUGINS, bound, busy, pressed_views, shown

from services.evictor.core.arbiter.eviction_frequency import by_window_h
from services.evictor.core.plugin import Plugin, View
from services.evictor.settings import Configured
from shared.contracts.mode import Mode
from shared.contracts.pod import Pod
from shared.core.evictions.intents import Spent

HOUR_S = 3600.0
SORT, OTHER = "Job/sort", "Job/other"


def evicted(at_s: float | None, owner: str | None = "default/Job/sort", mode: Mode = "enforce") -> Spent:
    return Spent(mode, "default", owner, at_s)


def test_real_evictions_of_the_workload_are_counted_for_each_of_its_pods_here() -> None:
    pods = [pod("a", owner=SORT), pod("b", owner=SORT), pod("c", owner=OTHER), pod("d")]
    spent = [
        evicted(9.5 * HOUR_S),
        evicted(8.1 * HOUR_S),
        evicted(7.9 * HOUR_S),
        evicted(9.9 * HOUR_S, mode="dry-run"),
        evicted(None),
        evicted(9.9 * HOUR_S, owner=None),
        evicted(9.9 * HOUR_S, owner="elsewhere/Job/sort"),
    ]
    found = by_window_h(pods, spent, 10 * HOUR_S, windows_h=(2.0, 0.5))
    assert found == {
        pods[0].uid: {"2": 1.0, "0.5": 0.5},
        pods[1].uid: {"2": 1.0, "0.5": 0.5},
        pods[2].uid: {"2": 0.0, "0.5": 0.0},
    }


def chosen(
    section: str, pods: list[Pod], evicted_by_window_h: dict[str, dict[str, float]], **settings: Any
) -> list[str]:
    plugin = PLUGINS[section]
    config = plugin.settings(enabled=True, **settings)
    views = [replace(v, evicted_by_window_h=evicted_by_window_h) for v in pressed_views([busy(p) for p in pods])]
    finding = shown(plugin, config, views)[-1]
    return [c.pod.name for c in plugin.rank(views[-1], finding, config)]


def test_a_workload_that_was_evicted_often_is_spared_where_the_frequency_is_weighed() -> None:
    pods = [bound("a", "shared_cores", owner=SORT), bound("b", "shared_cores", owner=OTHER)]
    often = {pods[0].uid: {"2": 0.8}, pods[1].uid: {"2": 0.0}}
    weighed = {"scorers": ("WorkloadEvictionFrequency",)}
    assert chosen("numa_cpu_pressure", pods, {}, **weighed) == ["a", "b"]
    assert chosen("numa_cpu_pressure", pods, often, **weighed) == ["b", "a"]
    assert chosen("numa_cpu_pressure", pods, often) == ["a", "b"], "it is not weighed unless that is set"


def test_owners_of_skipped_kinds_are_no_candidates() -> None:
    pods = [bound("a", "shared_cores", owner="DaemonSet/agent"), bound("b", "shared_cores", owner=SORT)]
    assert chosen("numa_cpu_pressure", pods, {}) == ["b"]
    assert chosen("numa_cpu_pressure", pods, {}, filters=("OverloadNuma",)) == ["a", "b"]


def test_the_evictor_shows_its_plugins_what_the_ledger_counts(node: MakeNode, virtual: Virtual) -> None:
    views = []

    def remember(memory: Any, view: View, settings: Any) -> tuple[Any, Any]:
        views.append(view)
        return memory, "calm"

    async def main() -> None:
        world = node(evictions_per_minute=600)
        await world.create_streams()
        gone, stays = (pod(name, owner=SORT, cpu=20_000) for name in ("gone", "stays"))
        world.run(gone, stays)
        world.offered_millis = 5_000
        async with world.life() as app:
            plugin = PLUGINS["template"]
            looks = Plugin("looks", plugin.settings, lambda: None, remember, lambda *_: ())
            app._detectors.configure({n: s.configured for n, s in app._detectors._states.items()} | {
                "looks": Configured(looks, plugin.settings(enabled=True))
            }, app._settings.rules)  # fmt: skip
            await world.tick(4)
        assert world.evictor.kills == [gone.uid]
        assert views[0].evicted_by_window_h == {gone.uid: {"2": 0.0}, stays.uid: {"2": 0.0}}
        assert views[-1].evicted_by_window_h == {stays.uid: {"2": 1.0}}

    virtual(main())
