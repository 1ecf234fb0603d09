"""Settings of the evictor and of its plugins, whose sections are found by scanning the plugin folder."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Any

from pydantic import Field

from services.evictor import plugins as plugin_folder
from services.evictor.core.plugin import Plugin, PluginSettings
from services.evictor.core.watch import Rules
from shared.core.scan import modules_in
from shared.errors import BadConfig
from shared.settings import Settings, check

SECTION = "evictor"
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class EvictorSettings(Settings):
    """Bounds that hold for every plugin, and a section for each plugin under its file's name."""

    max_input_age_s: Seconds = 5.0
    """A sample older than this is no evidence, and two samples further apart are not in a row."""
    max_allocation_age_s: Seconds = 15.0
    """What is offered to reclaimed pods is unknown once the last allocation is older than this."""
    confirm_samples: Annotated[int, Field(ge=2, le=100)] = 2
    """Samples in a row that must show a pressure; one sample is never enough."""
    cooling_s: Annotated[float, Field(ge=0, le=3600)] = 15.0
    """Time after an eviction in which the same plugin evicts nobody."""
    max_without_relief: Annotated[int, Field(ge=1, le=100)] = 3
    """Evictions after which a plugin stops until its pressure has gone once."""
    evictions_per_minute: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Rate of this node, over all plugins; as many may come at once. It survives restarts."""
    intent_deadline_s: Seconds = 60.0
    """An intent not begun within this time is cancelled."""
    announce_s: Seconds = 0.5
    """Longest wait for the stream to take an intent; then a hard pressure acts without it, a soft one does not."""
    call_timeout_s: Seconds = 10.0
    """Longest wait for one call to whoever evicts."""
    protected_namespaces: tuple[str, ...] = ("kube-system", "sublet-system")
    """Namespaces of which no pod is ever evicted."""
    plugins: dict[str, dict[str, Any]] = {}
    """Settings of each plugin, by the name of its file."""

    @property
    def rules(self) -> Rules:
        """As the core takes them."""
        return Rules(self.confirm_samples, self.max_input_age_s, self.cooling_s, self.max_without_relief)


@dataclass(frozen=True, slots=True)
class Configured:
    """A plugin with its settings."""

    plugin: Plugin[Any, Any, Any]
    settings: PluginSettings


def plugins_in(package: ModuleType) -> dict[str, Plugin[Any, Any, Any]]:
    """Every plugin of a folder by the name of its file, ascending."""
    return {name: module.PLUGIN for name, module in modules_in(package).items()}


def read(section: Mapping[str, Any]) -> tuple[EvictorSettings, dict[str, Configured]]:
    """The settings, and the enabled plugins by their name in events.

    Raises:
        BadConfig: a value out of bounds, or a plugin that no file holds.
    """
    settings = check(EvictorSettings, section, where=SECTION)
    known = plugins_in(plugin_folder)
    for name in settings.plugins:
        if name not in known:
            hint = difflib.get_close_matches(name, known, n=1)
            meant = f"did you mean {hint[0]!r}?" if hint else f"known: {', '.join(known)}"
            raise BadConfig(f"settings: {SECTION}.plugins.{name}: no such plugin; {meant}", reason="invalid")
    configured = (
        Configured(plugin, check(plugin.settings, settings.plugins.get(name, {}), where=f"{SECTION}.plugins.{name}"))
        for name, plugin in known.items()
    )
    return settings, {c.plugin.name: c for c in configured if c.settings.enabled}
