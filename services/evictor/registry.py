"""Where plugins come from: the files of `services/evictor/plugins`, and wheels that register one.

A wheel does so in its own pyproject.toml, without a change here:

    [project.entry-points."sublet.evictor.plugins"]
    mine = "my_package.my_module:PLUGIN"

Nothing of it is imported before settings for it are given: to install a wheel evicts nobody.
"""

import difflib
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from services.evictor import plugins
from services.evictor.core.plugin import Plugin, PluginSettings, Silence, View
from shared.core.scan import modules_in
from shared.errors import BadConfig, Refused

GROUP = "sublet.evictor.plugins"
"""The entry point group."""
BROKEN = "plugin_broken"


def plugins_in(package: ModuleType) -> dict[str, Plugin[Any, Any, Any]]:
    """Every plugin of a folder by the name of its file, ascending."""
    return {name: module.PLUGIN for name, module in modules_in(package).items()}


def known_plugins() -> dict[str, Plugin[Any, Any, Any]]:
    """Every plugin of our folder by the name of its file, ascending."""
    return plugins_in(plugins)


def outside_plugins(taken: Iterable[str]) -> dict[str, EntryPoint]:
    """What wheels have registered, by name, ascending; a name that is taken by a file of ours is not theirs."""
    found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return {point.name: point for point in found if point.name not in set(taken)}


def load(point: EntryPoint, taken: Iterable[str]) -> Plugin[Any, Any, Any]:
    """The plugin that an entry point names; `taken` are the names in events that others bear.

    Raises:
        Refused: `plugin_broken`, it cannot be imported, or is no plugin that could be used; the message says why.
    """
    where = f"plugin {point.name!r} ({point.value})"
    try:
        plugin: Any = point.load()
    except Exception as error:  # an import runs whatever the wheel holds
        raise Refused(f"{where} cannot be loaded: {type(error).__name__}: {error}", reason=BROKEN) from error
    if not isinstance(plugin, Plugin):
        raise Refused(f"{where} is a {type(plugin).__name__}, not a Plugin", reason=BROKEN)
    own_settings: Any = plugin.settings
    if not (isinstance(own_settings, type) and issubclass(own_settings, PluginSettings)):
        raise Refused(f"{where}: its settings are no subclass of PluginSettings", reason=BROKEN)
    if plugin.name in set(taken):
        raise Refused(f"{where} calls itself {plugin.name!r}, as another plugin does; rename it", reason=BROKEN)
    loaded: Plugin[Any, Any, Any] = plugin
    return loaded


def unusable(name: str, why: str) -> Plugin[Any, Any, Any]:
    """Stands in for a plugin that cannot be used: it sees nothing, and its failure becomes a condition of the node."""

    def evaluate(_memory: None, _view: View, _settings: PluginSettings) -> tuple[None, Silence]:
        raise Refused(why, reason=BROKEN)

    return Plugin(f"{GROUP}:{name}", PluginSettings, lambda: None, evaluate, lambda _view, _pressure, _settings: ())


def unknown(name: str, known: Iterable[str]) -> BadConfig:
    """The error for a plugin that nobody has."""
    known = sorted(known)
    hint = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {hint[0]!r}?" if hint else f"known: {', '.join(known)}"
    return BadConfig(f"settings: evictor.plugins.{name}: no such plugin; {meant}", reason="invalid")
