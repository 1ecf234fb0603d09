"""The settings that do what a key of Koordinator's ConfigMap says: every service takes them, whatever it says."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.settings import choose
from services.central.core.slo.keys import SHAPES, SLO_KEYS, SloKey
from services.central.core.slo.overlay import overlay
from services.central.core.slo.settings import FOLLOWED_KEYS, settings_of_strategy
from services.evictor.settings import read as read_evictor
from services.reporter.settings import ReporterSettings
from shared.settings import check

THRESHOLD: SloKey = "resource-threshold-config"
COLOCATION: SloKey = "colocation-config"
OFF = {"evictor": {"plugins": {name: {"enabled": False}
                               for name in ("memory_usage", "cpu_satisfaction", "reclaimed_allocatable")}}}  # fmt: skip


def settings(key: SloKey = THRESHOLD, **said: Any) -> dict[str, Any]:
    return settings_of_strategy(key, said).settings


def unfollowed(key: SloKey = THRESHOLD, **said: Any) -> str:
    found = settings_of_strategy(key, {"enable": True, **said}).unfollowed
    assert len(found) <= 1
    return "".join(found)


def plugins(**said: Any) -> Any:
    return settings(enable=True, **said)["evictor"]["plugins"]


def test_silence_is_no_setting_and_off_is_one() -> None:
    assert all(settings(key) == {} for key in SLO_KEYS)
    assert settings(cpuSuppressThresholdPercent=50) == {}
    assert settings(enable=False, cpuSuppressThresholdPercent=50) == OFF
    assert settings(COLOCATION, enable=False) == {"reporter": {"batch": {"enabled": False}, "mid": {"enabled": False}}}


def test_on_chooses_the_policy_and_gives_plugins_their_values_but_does_not_switch_them_on() -> None:
    found = settings(enable=True, cpuSuppressMinPercent=5)
    assert found["advisor"]["policy"] == "koordinator"
    own = {"suppress_threshold_percent": 65, "suppress_policy": "cpuset", "suppress_min_percent": 5}
    assert found["advisor"]["policies"] == {"koordinator": own}
    assert found["evictor"]["plugins"] == {"memory_usage": {"threshold_percent": 70, "lower_percent": 68}}


@pytest.mark.parametrize(
    ("said", "plugin", "wanted"),
    [
        ({"memoryEvictThresholdPercent": 1}, "memory_usage", {"threshold_percent": 1, "lower_percent": 0}),
        ({"memoryEvictLowerPercent": 60}, "memory_usage", {"threshold_percent": 70, "lower_percent": 60}),
        ({"cpuEvictPolicy": "evictByAllocatable"}, "cpu_satisfaction", {"limit": "offer"}),
        ({"cpuEvictTimeWindowSeconds": 60}, "cpu_satisfaction", {"period_s": 5.0, "window_samples": 12}),
        (
            {"cpuEvictBESatisfactionLowerPercent": 20, "cpuEvictBESatisfactionUpperPercent": 50},
            "cpu_satisfaction",
            {"lower_percent": 20, "upper_percent": 50},
        ),
        ({"cpuEvictBEUsageThresholdPercent": 80}, "cpu_satisfaction", {"usage_threshold_percent": 80}),
        (
            {"memoryAllocatableEvictThresholdPercent": 120},
            "reclaimed_allocatable",
            {"threshold_percent": 120, "lower_percent": 100},
        ),
        (
            {"memoryAllocatableEvictThresholdPercent": 90, "memoryAllocatableEvictLowerPercent": 80},
            "reclaimed_allocatable",
            {"threshold_percent": 90, "lower_percent": 80},
        ),
        ({"allocatableEvictPriorityThreshold": 7999}, "reclaimed_allocatable", {"highest_priority": 7999}),
    ],
)
def test_thresholds_of_evictions_are_values_of_plugins(
    said: dict[str, Any], plugin: str, wanted: dict[str, Any]
) -> None:
    assert plugins(**said)[plugin] == wanted


@pytest.mark.parametrize(
    ("key", "said", "wanted"),
    [
        (THRESHOLD, {"memoryEvictThresholdPercent": 0}, "memoryEvictThresholdPercent = 0: want 1 to 100"),
        (THRESHOLD, {"cpuEvictBESatisfactionLowerPercent": 20}, "want cpuEvictBESatisfactionUpperPercent as well"),
        (
            THRESHOLD,
            {"cpuEvictBESatisfactionLowerPercent": 61, "cpuEvictBESatisfactionUpperPercent": 70},
            "cpuEvictBESatisfactionLowerPercent = 61: want 1 to 60",
        ),
        (THRESHOLD, {"cpuEvictTimeWindowSeconds": 5}, "cpuEvictTimeWindowSeconds = 5: want 15 to 5000"),
        (THRESHOLD, {"memoryAllocatableEvictThresholdPercent": 20_000}, "ThresholdPercent = 20000: want 1 to 10000"),
        (THRESHOLD, {"memoryAllocatableEvictThresholdPercent": 90}, "want memoryAllocatableEvictLowerPercent as well"),
        (THRESHOLD, {"memoryAllocatableEvictLowerPercent": 90}, "want memoryAllocatableEvictThresholdPercent as well"),
        (COLOCATION, {"cpuReclaimThresholdPercent": 120}, "cpuReclaimThresholdPercent = 120: want 0 to 100"),
        (COLOCATION, {"cpuCalculatePolicy": "request"}, "cpuCalculatePolicy = request: want usage or maxUsageRequest"),
        (COLOCATION, {"metricReportIntervalSeconds": 5}, "metricReportIntervalSeconds = 5: want 30 to 3600"),
        (COLOCATION, {"metricAggregatePolicy": {"durations": ["5m", "2h"]}}, "= 5m, 2h: want up to 8 durations of 1m"),
        (COLOCATION, {"metricMemoryCollectPolicy": "usageWithHotPageCache"}, "want usageWithoutPageCache or usageWith"),
        (COLOCATION, {"degradeTimeMinutes": 61}, "degradeTimeMinutes = 61: want 1 to 60"),
    ],
)
def test_a_value_that_no_setting_takes_is_named_and_left_out(key: SloKey, said: dict[str, Any], wanted: str) -> None:
    assert wanted in unfollowed(key, **said)
    assert unfollowed(key, **said).endswith("here; the setting of the nodes holds")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"cpuEvictThresholdPercent": 80}, "cpuEvictThresholdPercent = 80: no eviction here takes tenants for it"),
        ({"evictEnabledPriorityThreshold": 0}, "evictEnabledPriorityThreshold = 0: no eviction here takes tenants"),
        ({"cpuAllocatableEvictLowerPercent": 90}, "cpuAllocatableEvictLowerPercent = 90: one pair holds for CPU and"),
        (
            {"enable": False},
            "enable = false: evictions end; suppression stays where settings name advisor",
        ),
    ],
)
def test_what_nothing_here_does_is_named(said: dict[str, Any], wanted: str) -> None:
    assert wanted in unfollowed(**said)


def test_marks_for_cpu_that_are_those_for_memory_are_followed_with_them() -> None:
    assert unfollowed(memoryAllocatableEvictThresholdPercent=120, cpuAllocatableEvictThresholdPercent=120) == ""


MID = {"cpu_at_most_percent": 100, "memory_at_most_percent": 100, "unallocated_percent": 0,
       "static_cpu_percent": 0, "static_memory_percent": 0}  # fmt: skip


def test_colocation_is_what_the_reporter_offers() -> None:
    found = settings(COLOCATION, enable=True, batchCPUThresholdPercent=90, memoryCalculatePolicy="request")
    own = {"enabled": True, "cpu_reclaim_percent": 60, "memory_reclaim_percent": 65, "cpu_at_most_percent": 90,
           "cpu_policy": "usage", "memory_policy": "request"}  # fmt: skip
    assert found == {"reporter": {"batch": own, "mid": {"enabled": True} | MID}}


@pytest.mark.parametrize(("word", "mode"), [("static", "static"), ("usage", "prediction"), ("", "prediction")])
def test_mid_resources_are_offered_as_the_config_map_says(word: str, mode: str) -> None:
    said = {
        "midReclaimMode": word,
        "midStaticCPUReservedPercent": 20,
        "midUnallocatedPercent": 5,
        "degradeTimeMinutes": 2,
    }
    own = {"enabled": True, "mode": mode, "static_cpu_percent": 20, "unallocated_percent": 5, "degrade_after_s": 120.0}
    assert settings(COLOCATION, enable=True, **said)["reporter"]["mid"] == MID | own


def test_how_the_node_metric_is_collected_is_followed_where_it_is_said() -> None:
    assert "node_metric" not in settings(COLOCATION, enable=True)["reporter"]
    found = settings(
        COLOCATION,
        enable=True,
        metricAggregateDurationSeconds=120,
        metricReportIntervalSeconds=30,
        metricAggregatePolicy={"durations": ["2m", "1h"]},
        metricMemoryCollectPolicy="usageWithPageCache",
    )
    own = {"aggregate_s": 120, "report_s": 30, "windows_s": [120, 3600], "memory": "usageWithPageCache"}
    assert found["reporter"]["node_metric"] == own


def test_old_figures_are_believed_no_longer_than_here_unless_the_config_map_says_so() -> None:
    assert "degrade_after_s" not in settings(COLOCATION, enable=True)["reporter"]["batch"]
    assert settings(COLOCATION, enable=True, degradeTimeMinutes=2)["reporter"]["batch"]["degrade_after_s"] == 120.0


def percent() -> st.SearchStrategy[int]:
    return st.integers(0, 100)


SAID: dict[SloKey, dict[str, st.SearchStrategy[Any]]] = {
    THRESHOLD: {
        "enable": st.booleans(),
        "cpuSuppressThresholdPercent": percent(),
        "cpuSuppressMinPercent": percent(),
        "cpuSuppressPolicy": st.sampled_from(["cpuset", "cfsQuota"]),
        "memoryEvictThresholdPercent": percent(),
        "memoryEvictLowerPercent": percent(),
        "cpuEvictBESatisfactionUpperPercent": percent(),
        "cpuEvictBESatisfactionLowerPercent": percent(),
        "cpuEvictBEUsageThresholdPercent": percent(),
        "cpuEvictTimeWindowSeconds": st.integers(1, 1 << 40),
        "cpuEvictPolicy": st.sampled_from(["evictByRealLimit", "evictByAllocatable"]),
        "memoryAllocatableEvictThresholdPercent": st.integers(0, 200) | st.integers(0, 1 << 40),
        "memoryAllocatableEvictLowerPercent": st.integers(0, 200) | st.integers(0, 1 << 40),
        "cpuAllocatableEvictThresholdPercent": st.integers(0, 200),
        "allocatableEvictPriorityThreshold": st.integers(0, 7999),
    },
    COLOCATION: {
        "enable": st.booleans(),
        "cpuReclaimThresholdPercent": st.integers(0, 1 << 40),
        "memoryReclaimThresholdPercent": st.integers(0, 200),
        "batchCPUThresholdPercent": st.integers(0, 200),
        "batchMemoryThresholdPercent": st.integers(0, 200),
        "midReclaimMode": st.sampled_from(["static", "usage"]),
        "midCPUThresholdPercent": percent(),
        "midMemoryThresholdPercent": percent(),
        "midUnallocatedPercent": percent(),
        "midStaticCPUReservedPercent": percent(),
        "midStaticMemoryReservedPercent": percent(),
        "cpuCalculatePolicy": st.sampled_from(["usage", "request", "maxUsageRequest"]),
        "memoryCalculatePolicy": st.sampled_from(["usage", "request", "maxUsageRequest"]),
        "degradeTimeMinutes": st.integers(1, 1 << 40),
        "metricAggregateDurationSeconds": st.integers(1, 1 << 40),
        "metricReportIntervalSeconds": st.integers(1, 1 << 40),
        "metricAggregatePolicy": st.fixed_dictionaries(
            {}, optional={"durations": st.lists(st.sampled_from(["1m", "90s", "1h", "2h", "500ms"]), max_size=12)}
        ),
        "metricMemoryCollectPolicy": st.sampled_from(
            ["usageWithoutPageCache", "usageWithPageCache", "usageWithHotPageCache"]
        ),
    },
}


@given(st.sampled_from([THRESHOLD, COLOCATION]).flatmap(
    lambda key: st.tuples(st.just(key), st.fixed_dictionaries({}, optional=SAID[key]))))  # fmt: skip
def test_whatever_a_valid_strategy_says_the_services_take_its_settings(given_: tuple[SloKey, dict[str, Any]]) -> None:
    key, said = given_
    shape = SHAPES[key]
    try:
        shape.model.model_validate(overlay(shape.built_in, said))
    except ValueError:
        return
    sections = settings(key, **said)
    choose(sections.get("advisor", {}))
    read_evictor(sections.get("evictor", {}))
    check(ReporterSettings, sections.get("reporter", {}), where="reporter")


def test_the_keys_that_are_followed_are_tried_above() -> None:
    assert set(SAID) <= set(FOLLOWED_KEYS)
