"""Finds the plugins: the files of `services/evictor/plugins`, and those that wheels register (`shared.registry`).

A plugin of a wheel is not imported before it has settings, so installing a wheel evicts no pod.
"""

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

from services.evictor import plugins
from services.evictor.core.plugin import Plugin, PluginSettings, Silence, View
from shared.core.text.did_you_mean import did_you_mean
from shared.errors import Refused, SettingProblem
from shared.registry import Registry

GROUP = "sublet.evictor.plugins"
"""The entry point group."""
PLUGINS: Registry[Plugin[Any, Any, Any]] = Registry(Plugin, plugins, "PLUGIN", group=GROUP, settings=PluginSettings)


def plugins_in(package: ModuleType) -> dict[str, Plugin[Any, Any, Any]]:
    """Every plugin of a folder by the name of its file, ascending."""
    return PLUGINS.known(package)


def known_plugins() -> dict[str, Plugin[Any, Any, Any]]:
    """Every plugin of our folder by the name of its file, ascending."""
    return PLUGINS.known()


def outside_plugins(taken: Iterable[str]) -> dict[str, EntryPoint]:
    """Return the plugins that wheels have registered, by name, ascending, without names that files of ours already
    use."""
    return PLUGINS.outside(taken)


def load(point: EntryPoint, taken: Iterable[str]) -> Plugin[Any, Any, Any]:
    """Load the plugin that an entry point names; `taken` are the names that others already use in events.

    Raises:
        Refused: `plugin_broken`: it cannot be imported, or is not a usable plugin; the message says why.
    """
    plugin = PLUGINS.load(point)
    # Two plugins of one name would share a record, and the evictions of one would count as those of the other.
    if plugin.name in set(taken):
        raise Refused(
            f"{PLUGINS.where(point)} calls itself {plugin.name!r}, as another plugin does; rename it",
            reason=PLUGINS.broken,
        )
    return plugin


def unusable(name: str, why: str) -> Plugin[Any, Any, Any]:
    """Stands in for a plugin that cannot be used: it sees nothing, and its failure becomes a condition of the node."""

    def evaluate(_memory: None, _view: View, _settings: PluginSettings) -> tuple[None, Silence]:
        raise Refused(why, reason=PLUGINS.broken)

    # Under the entry point's name, for the plugin's own is what could not be read or was taken.
    return Plugin(f"{GROUP}:{name}", PluginSettings, lambda: None, evaluate, lambda _view, _pressure, _settings: ())


def unknown(name: str, known: Iterable[str]) -> SettingProblem:
    """Describe a configured plugin that is in no folder and no wheel."""
    return SettingProblem(("evictor", "plugins", name), f": no such plugin; {did_you_mean(name, sorted(known))}")
