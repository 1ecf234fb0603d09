"""Plugins of the folder, and settings with which each sees something in the moments of `sublet plugin test`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from services.evictor import plugins as plugin_folder
from services.evictor.core.plugin import PluginSettings, Pressure, View
from services.evictor.registry import plugins_in
from services.evictor.settings import Configured
from shared.contracts.sample import PodReading
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
    "ENVELOPE", "PLUGINS", "STEPS", "STEP_S", "at", "bound", "busy", "calm_views", "configured", "idle", "pressed",
    "pressed_views", "sample", "settings_of", "shown", "view",
)  # fmt: skip
PLUGINS = plugins_in(plugin_folder)
SETTINGS: dict[str, dict[str, Any]] = {
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
