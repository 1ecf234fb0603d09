"""Laws for every file in the plugin folder, whatever it watches."""

from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from evictor_world import GIB, pod
from hypothesis import given, settings
from hypothesis import strategies as st
from plugin_world import (
    PLUGINS,
    STEP_S,
    STEPS,
    bound,
    busy,
    idle,
    pressed,
    pressed_views,
    sample,
    settings_of,
    shown,
    view,
)
from pydantic import BaseModel

from services.evictor.core.arbiter.choice import ConfirmedPressure, choose
from services.evictor.core.arbiter.confirmation import ConfirmationRules
from services.evictor.core.arbiter.guards import Surroundings, never
from services.evictor.core.plugin import PluginSettings, Pressure, View, checked_ranking
from services.evictor.detectors import Detectors
from services.evictor.settings import Configured
from shared.contracts.pod import Pod
from shared.contracts.sample import (
    ContainerReading,
    GroupNuma,
    NodeReading,
    NodeSample,
    NumaReading,
    PodReading,
    PoolReading,
)
from shared.core.evictions.intents import Record
from shared.core.pods.qos import CRITICAL_PRIORITY

SOFT = ("rss_overuse", "rootfs_overuse", "cpu_suppression", "network_interface")
SOFT_ONLY_TAINTS = ("cpu_load", "numa_sys_cpu_pressure")
NEEDS_TENANTS = ("cpu_load", "numa_cpu_pressure")
"""Plugins that look at shared pods only."""

few = settings(max_examples=20)
"""By fifteen plugins."""
each_plugin = pytest.mark.parametrize("section", PLUGINS)
some_pods = st.lists(
    st.builds(
        lambda name, qos, priority, cpu, memory, used, terminating: busy(
            bound(name, qos, priority=priority, cpu=cpu, memory=memory, terminating=terminating), used
        ),
        name=st.sampled_from([f"p{i}" for i in range(12)]),
        qos=st.sampled_from(["reclaimed_cores", "shared_cores", "dedicated_cores", "system_cores"]),
        priority=st.sampled_from([-1, 0, 1000, CRITICAL_PRIORITY]),
        cpu=st.integers(0, 3000),
        memory=st.integers(0, 3),
        used=st.integers(0, 3),
        terminating=st.booleans(),
    ),
    max_size=6,
    unique_by=lambda r: r.pod.name,
)


def ranked(section: str, readings: list[PodReading]) -> list[Pod]:
    pressure, one = pressed(section, readings)
    if pressure is None:
        return []
    return [c.pod for c in checked_ranking(PLUGINS[section].rank(one, pressure, settings_of(section)), one)]


def victim(section: str, readings: list[PodReading]) -> Pod | None:
    pressure, one = pressed(section, readings)
    if pressure is None:
        return None
    ready = ConfirmedPressure(pressure, lambda: PLUGINS[section].rank(one, pressure, settings_of(section)))
    (choice,) = choose({section: ready}, Surroundings())
    return choice.victim.pod if choice.victim else None


@each_plugin
def test_its_file_is_complete_and_its_name_is_its_own(section: str) -> None:
    plugin = PLUGINS[section]
    assert [p.name for p in PLUGINS.values()].count(plugin.name) == 1
    assert issubclass(plugin.settings, PluginSettings)
    assert plugin.settings.__doc__
    assert plugin.settings().mode == "enforce"


@each_plugin
def test_it_sees_pressure_where_there_is_some_and_names_somebody(section: str) -> None:
    """So that no law below holds for want of pressure."""
    qos = "shared_cores" if section in NEEDS_TENANTS else "reclaimed_cores"
    crowd = [busy(bound(f"p{i}", qos, cpu=9000, memory=9), i) for i in range(3)]
    pressure, _ = pressed(section, crowd)
    assert pressure is not None, "it never saw any pressure: add what it watches to plugin_world.py"
    assert not (pressure.hard and section in SOFT)
    assert pressure.why.numbers
    assert victim(section, crowd) is not None


@each_plugin
@few
@given(readings=some_pods, order=st.randoms(use_true_random=False))
def test_the_order_of_pods_in_a_sample_means_nothing(section: str, readings: list[PodReading], order: Random) -> None:
    mixed = list(readings)
    order.shuffle(mixed)
    one, other = pressed(section, readings), pressed(section, mixed)
    assert one[0] == other[0]
    found = ranked(section, readings)
    assert found == ranked(section, mixed)
    assert len({p.uid for p in found}) == len(found)


@each_plugin
@few
@given(readings=some_pods)
def test_no_tenant_goes_while_a_reclaimed_pod_would_do_and_the_protected_never(
    section: str, readings: list[PodReading]
) -> None:
    going, found = victim(section, readings), ranked(section, readings)
    if going is None:
        return
    assert never(going, ()) is None
    assert not going.terminating
    if going.qos != "reclaimed_cores":
        assert not [p for p in found if p.qos == "reclaimed_cores" and never(p, ()) is None]


@each_plugin
def test_without_any_figure_it_knows_nothing(section: str) -> None:
    batch = PodReading(pod=pod("batch", cpu=9, memory=9))
    empty = NodeSample(**sample([], low=False).model_dump(include={"node", "boot_id", "seq", "sent_at"}),
                       node_reading=NodeReading(online_cpus="0"))  # fmt: skip
    for one in (empty, empty.model_copy(update={"pods": (batch,)})):
        views = [View(STEP_S * step, one) for step in range(STEPS)]
        assert set(shown(PLUGINS[section], settings_of(section), views)) == {"unknown"}


CALM = [idle(bound(f"p{i}", qos, cpu=1, memory=100)) for i, qos in enumerate(["reclaimed_cores", "shared_cores"])]


@each_plugin
def test_it_is_calm_where_there_is_plenty(section: str) -> None:
    views = [view(CALM, low=False, t_s=STEP_S * step, step=step) for step in range(STEPS)]
    assert set(shown(PLUGINS[section], settings_of(section), views)) == {"calm"}


def blanked(one: Any, names: set[str], model: type[BaseModel]) -> Any:
    return one.model_copy(update={n: model.model_fields[n].get_default() for n in names if n in model.model_fields})


optional = sorted(
    {n for m in (NodeReading, NumaReading, ContainerReading, PoolReading) for n, f in m.model_fields.items()
     if not f.is_required()}
)  # fmt: skip


@each_plugin
@few
@given(gone=st.sets(st.sampled_from([*optional, "allocation", "reclaimed", "reclaimed_by_numa", "pools", "numas"])))
def test_a_figure_that_is_absent_never_makes_a_pressure(section: str, gone: set[str]) -> None:
    def without(one: View) -> View:
        node = blanked(one.sample.node_reading, gone, NodeReading)
        numas = () if "numas" in gone else tuple(blanked(n, gone, NumaReading) for n in one.sample.numas)
        pods = tuple(
            r.model_copy(update={"containers": tuple(blanked(c, gone, ContainerReading) for c in r.containers)})
            for r in one.sample.pods
        )
        pools = () if "pools" in gone else tuple(blanked(p, gone, PoolReading) for p in one.sample.pools)
        fields = {"node_reading": node, "numas": numas, "pods": pods, "pools": pools}
        left: dict[str, Any] = {n: None for n in ("allocation", "reclaimed", "reclaimed_by_numa") if n in gone}
        return replace(one, sample=one.sample.model_copy(update=fields), **left)

    views = [without(view(CALM, low=False, t_s=STEP_S * step, step=step)) for step in range(STEPS)]
    assert not [f for f in shown(PLUGINS[section], settings_of(section), views) if isinstance(f, Pressure)]


@each_plugin
def test_stale_input_evicts_nobody(section: str) -> None:
    crowd = [busy(bound(f"p{i}", "shared_cores", cpu=9000, memory=9), i) for i in range(3)]
    crowd += [busy(bound(f"r{i}", cpu=9000, memory=9), i) for i in range(3)]
    journal = SimpleNamespace(record_of=lambda name: Record())
    plugins = {section: Configured(PLUGINS[section], settings_of(section))}
    detectors = Detectors(plugins, ConfirmationRules(max_input_age_s=11.0), cast("Any", journal))
    for one in pressed_views(crowd):
        detectors.evaluate(one)
    last_s = STEP_S * (STEPS - 1)
    assert section in detectors.ready(last_s, set())
    assert detectors.ready(last_s + 11.1, set()) == {}
    assert detectors.evidence(section, last_s + 11.1) == "missing"


@pytest.mark.parametrize("section", ["rootfs_pressure", "rootfs_overuse"])
def test_a_figure_that_was_read_too_long_ago_is_no_evidence(section: str) -> None:
    crowd = [busy(bound(f"p{i}", cpu=9000, memory=9), i) for i in range(3)]
    old = dict.fromkeys(
        ("rootfs_capacity_bytes", "rootfs_available_bytes", "rootfs_inodes_free", "rootfs_inodes"), 61.0
    )
    views = [replace(v, sample=v.sample.model_copy(update={"figure_ages_s": old})) for v in pressed_views(crowd)]
    assert set(shown(PLUGINS[section], settings_of(section), views)) == {"unknown"}


@each_plugin
@few
@given(readings=some_pods)
def test_evaluating_changes_nothing_but_the_memory_it_returns(section: str, readings: list[PodReading]) -> None:
    plugin, settings, one = PLUGINS[section], settings_of(section), pressed_views(readings)[0]
    state = plugin.start()
    assert plugin.evaluate(state, one, settings) == plugin.evaluate(state, one, settings)
    assert state == plugin.start()


BY_REQUEST = ("reclaimed_overcommit", "reclaimed_numa_overcommit", "cpu_suppression")


@pytest.mark.parametrize("section", BY_REQUEST)
@few
@given(requests=st.lists(st.integers(1, 20_000), min_size=1, max_size=6))
def test_victims_by_request_are_enough_and_not_one_more(section: str, requests: list[int]) -> None:
    """One goes, everything is looked at anew, until it is calm: each had to go, and what they free ends it."""
    readings = [idle(bound(f"p{i}", cpu=cpu)) for i, cpu in enumerate(requests)]
    supply = {"reclaimed_cpu_millis": 1000}
    gone: list[Pod] = []

    def moments() -> list[View]:
        left = [r for r in readings if r.pod.uid not in {p.uid for p in gone}]
        offer = {"resource.katalyst.kubewharf.io/reclaimed_millicpu": supply["reclaimed_cpu_millis"]}
        views = [view(left, low=False, t_s=STEP_S * step) for step in range(STEPS)]
        pools = (PoolReading(pool="reclaim", cpu_usage_cores=0.0, cpu_limit_cores=1.0),)
        return [
            replace(v, reclaimed=offer, reclaimed_by_numa={0: offer},
                    sample=v.sample.model_copy(update={"pools": pools})) for v in views
        ]  # fmt: skip

    while isinstance(finding := shown(PLUGINS[section], settings_of(section), views := moments())[-1], Pressure):
        ranking = PLUGINS[section].rank(views[-1], finding, settings_of(section))
        assert ranking[0].relief
        gone.append(ranking[0].pod)
        assert len(gone) <= len(requests)
    left_millis = sum(requests) - sum(p.cpu_request_millis for p in gone)
    assert left_millis <= 5 * 1000
    if gone:
        assert left_millis + gone[-1].cpu_request_millis > 5 * 1000


@each_plugin
@few
@given(readings=some_pods)
def test_one_round_takes_one_pod_at_most(section: str, readings: list[PodReading]) -> None:
    pressure, one = pressed(section, readings)
    if pressure is not None:
        ready = ConfirmedPressure(pressure, lambda: PLUGINS[section].rank(one, pressure, settings_of(section)))
        assert len([c for c in choose({section: ready}, Surroundings()) if c.victim]) <= 1


@pytest.mark.parametrize("section", SOFT_ONLY_TAINTS)
def test_soft_pressure_of_load_taints_and_evicts_nobody(section: str) -> None:
    overrides = {"cpu_load": {"load_upper_bound_ratio": 1e6}, "numa_sys_cpu_pressure": {"cpu_hard_ratio": 1.0}}
    plugin, settings = PLUGINS[section], PLUGINS[section].settings(**overrides[section])
    views = pressed_views([busy(bound("web", "shared_cores"))])
    finding = shown(plugin, settings, views)[-1]
    assert not finding.hard
    assert finding.condition.endswith("/NoSchedule")
    assert plugin.rank(views[-1], finding, settings) == ()


def test_memory_of_a_pod_by_numa_node_decides_who_goes_there() -> None:
    here, elsewhere = busy(bound("here"), 1), busy(bound("elsewhere"), 3)
    away = elsewhere.containers[0].model_copy(update={"memory_numa": (GroupNuma(numa=1, anon_bytes=9 * GIB),)})
    spread = [here, elsewhere.model_copy(update={"containers": (away,)})]
    assert [p.name for p in ranked("numa_memory_pressure", spread)] == ["here"]
    assert [p.name for p in ranked("system_memory_pressure", spread)] == ["elsewhere", "here"]
