"""Translates Katalyst's `spec.config` to settings of Sublet's services
(docs/facts/katalyst-cluster.md#fields-of-the-configs).

Every field either maps to a setting, or is named as ignored: none is dropped silently. Bounds are those of the target
settings, or Katalyst's if narrower.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.central.core.katalyst.fields import FIELDS, Line, SettingPath
from services.central.core.katalyst.values import bytes_of, cores, share_of, texts

Sections = dict[str, Any]

PLUGIN_FILES = {
    "cpu-pressure-eviction-plugin": "cpu_load",
    "cpu-pressure-load-plugin": "cpu_load",
    "cpu-pressure-suppression-plugin": "cpu_suppression",
    "cpu-satisfaction-eviction-plugin": "cpu_satisfaction",
    "memory-pressure-eviction-plugin": "memory_pressure",
    "memory-usage-eviction-plugin": "memory_usage",
    "network-eviction-plugin": "network_interface",
    "numa-cpu-pressure-plugin": "numa_cpu_pressure",
    "numa-memory-pressure-eviction-plugin": "numa_memory_pressure",
    "numa-sys-cpu-pressure-plugin": "numa_sys_cpu_pressure",
    "reclaimed-allocatable-eviction-plugin": "reclaimed_allocatable",
    "reclaimed-numa-resource-pressure-eviction-plugin": "reclaimed_numa_overcommit",
    "reclaimed-resource-pressure-eviction-plugin": "reclaimed_overcommit",
    "rootfs-overuse-eviction-plugin": "rootfs_overuse",
    "rootfs-pressure-eviction-plugin": "rootfs_pressure",
    "rss-overuse-eviction-plugin": "rss_overuse",
    "system-memory-pressure-eviction-plugin": "system_memory_pressure",
}
"""Plugins by the names that `dryRun` may list."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """The result of a `spec.config`: settings by section, and the fields without a counterpart in Sublet."""

    settings: Sections
    ignored: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """A sentence for the object's status; empty when every field is used."""
        return f"ignored, for Sublet has no such setting: {', '.join(self.ignored)}" if self.ignored else ""


def settings_of(config: Mapping[str, Any] | None) -> Mapped:
    """Return the settings for a `spec.config`, in the order of field names; a null field counts as absent.

    Raises:
        Refused: `ValidateFailed`, naming field, value and bound.
    """
    settings: Sections = {}
    ignored: list[str] = []
    for path, value in _leaves(config or {}, ""):
        if path == "evictionConfig.dryRun":
            ignored += _dry_run(path, value, settings)
        elif path.startswith("reclaimedResourceConfig.reservedResourceForAllocate."):
            ignored += _reserved(path, value, settings)
        elif (field := FIELDS.get(path)) is None:
            ignored.append(path)
        elif isinstance(field, Line):
            _line(path, value, field, settings)
        else:
            found = field.read(path, value)
            for place in field.to:
                _put(settings, place, found)
    return Mapped(settings, tuple(ignored))


def _leaves(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """Fields with their values. A mapping that is itself a field's value is not entered."""
    for key in sorted(node):
        here, value = f"{path}{key}", node[key]
        if value is None:
            continue
        if isinstance(value, Mapping) and here not in FIELDS:
            yield from _leaves(value, f"{here}.")
        else:
            yield here, value


def _put(settings: Sections, place: SettingPath, value: Any) -> None:
    here = settings
    for name in place[:-1]:
        here = here.setdefault(name, {})
    here[place[-1]] = value


def _line(path: str, value: Any, field: Line, settings: Sections) -> None:
    """A line may be an amount or a percentage of the capacity; the other one of the two is taken back."""
    ratio = share_of(path, value)
    amount = None if ratio is not None else bytes_of(path, value)
    _put(settings, field.amount, amount)
    _put(settings, field.ratio, ratio)


def _dry_run(path: str, value: Any, settings: Sections) -> list[str]:
    """Plugins that only rehearse; "*" is all of them. Returns the names that Sublet has no plugin for."""
    names = texts()(path, value)
    known = sorted(PLUGIN_FILES) if "*" in names else [name for name in names if name in PLUGIN_FILES]
    for name in known:
        _put(settings, ("evictor", "plugins", PLUGIN_FILES[name], "mode"), "dry-run")
    return [f"{path}[{name}]" for name in names if name != "*" and name not in PLUGIN_FILES]


def _reserved(path: str, value: Any, settings: Sections) -> list[str]:
    match path.rpartition(".")[2]:
        case "cpu":
            _put(settings, ("advisor", "reserve_cores"), cores(path, value))
        case "memory":
            _put(settings, ("advisor", "reserved_memory_bytes"), bytes_of(path, value))
        case _:
            return [path]
    return []
