"""Katalyst's configs as Sublet's settings: every value goes where the services take it, or is refused in words."""

import json
from typing import Any

import pytest

from services.advisor.settings import choose
from services.central.core.katalyst.fields import FIELDS, Line
from services.central.core.katalyst.settings import PLUGIN_FILES, settings_of
from services.central.core.katalyst.values import bytes_of, flag, thresholds
from services.evictor.registry import known_plugins
from services.evictor.settings import read
from shared.errors import Refused

CPU, MEMORY = "resource.katalyst.kubewharf.io/reclaimed_millicpu", "resource.katalyst.kubewharf.io/reclaimed_memory"


def at(path: str, value: Any) -> Any:
    for part in reversed(path.split(".")):
        value = {part: value}
    return value


TUTORIAL = {
    "evictionPluginsConfig": {
        "reclaimedResourcesEvictionPluginConfig": {
            "evictionThreshold": {
                "katalyst.kubewharf.io/reclaimed_millicpu": 10,
                "katalyst.kubewharf.io/reclaimed_memory": 10,
            }
        }
    }
}


def test_the_tutorials_threshold_reaches_the_plugin_under_its_names_of_today() -> None:
    mapped = settings_of(TUTORIAL)
    _, plugins = read(mapped.settings["evictor"])
    settings = plugins["reclaimed-resource-pressure-eviction-plugin"].settings.model_dump()
    assert settings["eviction_threshold"] == {CPU: 10, MEMORY: 10}
    assert (mapped.ignored, mapped.note) == ((), "")


def test_the_tutorials_memory_config_reaches_the_plugin() -> None:
    mapped = settings_of(
        at(
            "evictionPluginsConfig.memoryEvictionPluginConfig",
            {
                "enableNumaLevelDetection": False,
                "systemKswapdRateExceedTimesThreshold": 1,
                "systemKswapdRateThreshold": 2000,
            },
        )
    )
    _, plugins = read(mapped.settings["evictor"])
    settings = plugins["memory-pressure-eviction-plugin"].settings.model_dump()
    names = ("numa_level", "kswapd_exceed_times", "kswapd_rate_pages_per_s")
    assert tuple(settings[name] for name in names) == (False, 1, 2000)


SAMPLES = ("observe", True, 1, 1.5, 0.5, 30, 2000, "5m", "10%", "10Gi", ["shared_cores"], {CPU: 3.0, MEMORY: 2})


@pytest.mark.parametrize("path", sorted(FIELDS))
def test_what_central_accepts_every_service_accepts(path: str) -> None:
    """The bounds are written down twice; here they meet."""
    taken = 0
    for value in (*SAMPLES, *bounds(path)):
        try:
            mapped = settings_of(at(path, value))
        except Refused:
            continue
        taken += 1
        assert not mapped.ignored
        read(mapped.settings.get("evictor", {}))
        choose(mapped.settings.get("advisor", {}))
    assert taken


def bounds(path: str) -> list[float]:
    """Values at and around the bounds that central's own words name."""
    try:
        settings_of(at(path, float("nan")))
    except Refused as refusal:
        words = str(refusal).replace("s", " ").split()
        numbers = [float(word) for word in words if word.lstrip("-").replace(".", "").replace("e+", "").isdigit()]
        return [edge + step for edge in numbers for step in (-1, 0, 1e-9, 1)] + [int(edge) for edge in numbers]
    return []


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("evictionPluginsConfig.reclaimedResourcesEvictionPluginConfig.evictionThreshold", {CPU: 0}, "above 0"),
        ("evictionPluginsConfig.reclaimedResourcesEvictionPluginConfig.evictionThreshold", {CPU: "5"}, "'5'"),
        ("evictionPluginsConfig.reclaimedResourcesEvictionPluginConfig.evictionThreshold", {"cpu": 5}, "one of"),
        ("evictionPluginsConfig.reclaimedResourcesEvictionPluginConfig.evictionThreshold", 5, "mapping"),
        ("evictionPluginsConfig.memoryEvictionPluginConfig.gracePeriod", -2, "from -1 to 3600"),
        ("evictionPluginsConfig.memoryEvictionPluginConfig.enableNumaLevelDetection", 1, "true or false"),
        ("evictionPluginsConfig.memoryEvictionPluginConfig.numaFreeBelowWatermarkTimesThreshold", 1.5, "whole number"),
        ("evictionPluginsConfig.memoryEvictionPluginConfig.numaFreeBelowWatermarkTimesThreshold", True, "whole number"),
        ("evictionConfig.cpuPressureEvictionConfig.loadThresholdMetPercentage", 1.1, "up to 1"),
        ("evictionConfig.cpuPressureEvictionConfig.loadEvictionCoolDownTime", "2h", "duration"),
        ("evictionConfig.rootfsPressureEvictionConfig.minimumImageFsFreeThreshold", "101%", "at most 100%"),
        ("evictionConfig.rootfsPressureEvictionConfig.minimumImageFsFreeThreshold", "much", "quantity"),
        ("evictionConfig.rootfsPressureEvictionConfig.rootfsOveruseEvictionSupportedQoSLevels", ["x"], "shared_cores"),
        ("evictionConfig.dryRun", "all", "list of text"),
        ("reclaimedResourceConfig.reservedResourceForAllocate.cpu", "-1", "from 0"),
    ],
)
def test_a_wrong_value_is_refused_with_field_value_and_bound(path: str, value: Any, words: str) -> None:
    with pytest.raises(Refused) as caught:
        settings_of(at(path, value))
    assert caught.value.reason == "ValidateFailed"
    assert f"spec.config.{path}" in str(caught.value)
    assert words in str(caught.value)


def test_two_spellings_of_one_resource_must_not_differ() -> None:
    both = {"katalyst.kubewharf.io/reclaimed_memory": 5, MEMORY: 6}
    with pytest.raises(Refused, match="one name alone"):
        settings_of(at("evictionConfig.reclaimedResourcesEvictionConfig.evictionThreshold", both))
    assert thresholds("x", {**both, MEMORY: 5}) == {MEMORY: 5}


def test_a_field_without_counterpart_is_named_and_the_others_are_used() -> None:
    mapped = settings_of(
        {
            "evictionConfig": {
                "memoryPressureEvictionConfig": {"systemEvictionRankingMetrics": ["qos.pod"], "gracePeriod": 5},
                "dryRun": ["rss-overuse-eviction-plugin", "of-somebody-else"],
            },
            "irq": None,
            "made": {"up": 1},
        }
    )
    assert mapped.ignored == (
        "evictionConfig.dryRun[of-somebody-else]",
        "evictionConfig.memoryPressureEvictionConfig.systemEvictionRankingMetrics",
        "made.up",
    )
    assert all(name in mapped.note for name in mapped.ignored)
    plugins = mapped.settings["evictor"]["plugins"]
    assert plugins["rss_overuse"]["mode"] == "dry-run"
    assert plugins["memory_pressure"]["grace_period_s"] == 5


def test_a_line_is_an_amount_or_a_share_and_never_both() -> None:
    path = "evictionConfig.rootfsPressureEvictionConfig.minimumImageFsFreeThreshold"
    for value, amount, ratio in (("10%", None, 0.1), ("1Gi", 1 << 30, None)):
        settings = settings_of(at(path, value)).settings["evictor"]["plugins"]["rootfs_pressure"]
        assert settings == {"minimum_free_bytes": amount, "minimum_free_ratio": ratio}


def test_every_plugin_can_be_rehearsed() -> None:
    assert set(PLUGIN_FILES.values()) == known_plugins().keys() - {"template"}
    names = {plugin.name for name, plugin in known_plugins().items() if name != "template"}
    assert names <= PLUGIN_FILES.keys()
    mapped = settings_of(at("evictionConfig.dryRun", ["*"]))
    _, plugins = read(mapped.settings["evictor"])
    assert {c.settings.mode for c in plugins.values()} == {"dry-run"}


def test_what_is_kept_back_reaches_the_advisor() -> None:
    mapped = settings_of(at("reclaimedResourceConfig.reservedResourceForAllocate", {"cpu": "2500m", "memory": "1Gi"}))
    settings = choose(mapped.settings["advisor"]).settings
    assert (settings.reserve_cores, settings.reserved_memory_bytes) == (2.5, 1 << 30)


def test_no_config_says_nothing_and_settings_are_plain_json() -> None:
    assert settings_of(None).settings == {}
    assert settings_of({"evictionConfig": None}).settings == {}
    for path, field in FIELDS.items():
        value = "5%" if isinstance(field, Line) else True if field.read is flag else 4096
        if not isinstance(field, Line) and field.read is not bytes_of and field.read is not flag:
            continue
        assert json.loads(json.dumps(settings_of(at(path, value)).settings))


def test_the_switch_of_a_pool_of_nodes_stands_beside_the_sections() -> None:
    assert settings_of(at("sublet.mode", "enforce")).settings == {"mode": "enforce"}
    for wrong in ("dry-run", "Enforce", True, 1, ["enforce"]):
        with pytest.raises(Refused, match=r"spec\.config\.sublet\.mode = .*: want observe or enforce"):
            settings_of(at("sublet.mode", wrong))
