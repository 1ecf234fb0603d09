"""Laws that every plugin of the folder holds to, as `sublet plugin test` runs them, and what else holds of ours."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from evictor_world import GIB
from hypothesis import given, settings
from hypothesis import strategies as st
from plugin_world import (
    PLUGINS,
    STEP_S,
    STEPS,
    bound,
    busy,
    configured,
    idle,
    pressed,
    pressed_views,
    settings_of,
    shown,
    view,
)

from services.evictor.core.arbiter.choice import ConfirmedPressure, choose
from services.evictor.core.arbiter.confirmation import ConfirmationRules
from services.evictor.core.arbiter.guards import Surroundings
from services.evictor.core.plugin import Pressure, View, checked_ranking
from services.evictor.detectors import Detectors
from services.evictor.settings import Configured
from shared.contracts.pod import Pod, QosClass
from shared.contracts.sample import (
    GroupNuma,
    PodReading,
    PoolReading,
)
from shared.core.evictions.intents import Record
from sublet.laws.law import Law
from sublet.laws.plugin import LAWS

SOFT = (
    "rss_overuse",
    "rootfs_overuse",
    "cpu_suppression",
    "cpu_satisfaction",
    "reclaimed_allocatable",
    "network_interface",
)
SOFT_ONLY_TAINTS = ("cpu_load", "numa_sys_cpu_pressure")
NEEDS_TENANTS = ("cpu_load", "numa_cpu_pressure")
"""Plugins that look at shared pods only."""

few = settings(max_examples=20)
"""By fifteen plugins."""
each_plugin = pytest.mark.parametrize("section", PLUGINS)


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


def test_there_are_eleven_laws() -> None:
    assert len(LAWS) == 11


@pytest.mark.parametrize("law", [pytest.param(law, id=name.replace(" ", "_")) for name, law in LAWS.items()])
@each_plugin
def test_a_plugin_holds_each_law(section: str, law: Law[Configured]) -> None:
    law(configured(section))


@each_plugin
def test_its_name_is_its_own(section: str) -> None:
    assert [p.name for p in PLUGINS.values()].count(PLUGINS[section].name) == 1


@each_plugin
def test_it_names_somebody_where_there_is_pressure(section: str) -> None:
    """Also one that is soft and sets a condition."""
    qos: QosClass = "shared_cores" if section in NEEDS_TENANTS else "reclaimed_cores"
    crowd = [busy(bound(f"p{i}", qos, cpu=9000, memory=9), i) for i in range(3)]
    pressure, _ = pressed(section, crowd)
    assert pressure is not None
    assert not (pressure.hard and section in SOFT)
    assert victim(section, crowd) is not None


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


@pytest.mark.parametrize("section", SOFT_ONLY_TAINTS)
def test_soft_pressure_of_load_taints_and_evicts_nobody(section: str) -> None:
    overrides = {"cpu_load": {"load_upper_bound_ratio": 1e6}, "numa_sys_cpu_pressure": {"cpu_hard_ratio": 1.0}}
    plugin, settings = PLUGINS[section], PLUGINS[section].settings(**overrides[section])
    views = pressed_views([busy(bound("web", "shared_cores"))])
    finding = shown(plugin, settings, views)[-1]
    assert isinstance(finding, Pressure)
    assert not finding.hard
    assert (finding.condition or "").endswith("/NoSchedule")
    assert plugin.rank(views[-1], finding, settings) == ()


def test_memory_of_a_pod_by_numa_node_decides_who_goes_there() -> None:
    here, elsewhere = busy(bound("here"), 1), busy(bound("elsewhere"), 3)
    away = elsewhere.containers[0].model_copy(update={"memory_numa": (GroupNuma(numa=1, anon_bytes=9 * GIB),)})
    spread = [here, elsewhere.model_copy(update={"containers": (away,)})]
    assert [p.name for p in ranked("numa_memory_pressure", spread)] == ["here"]
    assert [p.name for p in ranked("system_memory_pressure", spread)] == ["elsewhere", "here"]
