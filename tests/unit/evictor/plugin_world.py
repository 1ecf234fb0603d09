"""Plugins of the folder, and settings with which each sees something in the moments of `sublet plugin test`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from services.evictor import plugins as plugin_folder
from services.evictor.core.plugin import PluginSettings, Pressure, View
from services.evictor.registry import plugins_in
from services.evictor.settings import Configured
from shared.contracts.pod import Pod
from shared.contracts.sample import ContainerReading, PodReading
from sublet.laws import plugin_moments
from sublet.laws.plugin_moments import (
    ENVELOPE,
    STEP_S,
    STEPS,
    bound,
    busy,
    calm_views,
    idle,
    pressed_views,
    sample,
    shown,
    view,
)

__all__ = (
    "ENVELOPE", "PLUGINS", "STEPS", "STEP_S", "at", "bound", "busy", "calm", "calm_views", "configured", "goes",
    "idle", "pressed", "pressed_views", "reading", "sample", "says", "settings_of", "shown", "view", "words",
)  # fmt: skip
PLUGINS = plugins_in(plugin_folder)
SETTINGS: dict[str, dict[str, Any]] = {
    "cpu_satisfaction": {"limit": "offer"},
    "cpu_suppression": {"min_suppression_tolerance_duration_s": 20},
    "network_interface": {"nic_unhealthy_tolerance_s": 20},
    "rootfs_overuse": {
        "supported_qos": ("shared_cores", "reclaimed_cores"),
        "shared_threshold_ratio": 0.1,
        "reclaimed_threshold_ratio": 0.1,
        "max_victims": 9,
    },
    "rootfs_pressure": {"minimum_free_ratio": 0.1, "minimum_inodes_free_ratio": 0.1},
    "system_memory_pressure": {"kswapd_exceed_duration_s": 20},
}
"""What a plugin needs beyond its defaults to see anything within the steps of `pressed`."""


def settings_of(section: str) -> PluginSettings:
    settings: PluginSettings = PLUGINS[section].settings(enabled=True, **SETTINGS.get(section, {}))
    return settings


def configured(section: str) -> Configured:
    """A plugin of the folder with those settings."""
    return Configured(PLUGINS[section], settings_of(section))


def pressed(section: str, readings: Sequence[PodReading]) -> tuple[Pressure | None, View]:
    """What a plugin sees at the end of a shortage."""
    return plugin_moments.pressed(PLUGINS[section], settings_of(section), readings)


def at(one: View, t_s: float) -> View:
    return replace(one, t_s=t_s)


def reading(of: Pod, **figures: Any) -> PodReading:
    return PodReading(pod=of, containers=(ContainerReading(name="main", **figures),))


def calm(readings: list[PodReading], t_s: float = 0.0, node: dict[str, Any] | None = None, **numa: Any) -> View:
    """A view without any shortage but the one that is asked for."""
    one = view(readings, low=False, t_s=t_s)
    fields: dict[str, Any] = {"node_reading": one.sample.node_reading.model_copy(update=node or {})}
    if numa:
        fields["numas"] = tuple(n.model_copy(update=numa) for n in one.sample.numas)
    return replace(one, sample=one.sample.model_copy(update=fields))


def says(section: str, views: list[View], **settings: Any) -> list[Any]:
    plugin = PLUGINS[section]
    return shown(plugin, plugin.settings(**settings), views)


def words(findings: list[Any]) -> list[str]:
    return [f if isinstance(f, str) else "hard" if f.hard else "soft" for f in findings]


def goes(section: str, one: View, finding: Pressure, **settings: Any) -> list[str]:
    plugin = PLUGINS[section]
    return [c.pod.name for c in plugin.rank(one, finding, plugin.settings(**settings))]
