"""Detects that less than a share of the memory is available: the largest reclaimed pod goes.

This is the plugin to copy. It is complete and it works, but it is off by default: `memory_pressure` watches what the
kernel itself goes by. docs/writing-an-eviction-plugin.md explains it line by line.
"""

from typing import Annotated

from pydantic import Field

from sublet.api.plugin import Candidate, Plugin, PluginSettings, Pressure, Reason, Silence, View


class TemplateSettings(PluginSettings):
    """What can be set, with its bounds."""

    enabled: bool = False
    least_available_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Less of the memory available than this is pressure."""


def evaluate(_memory: None, view: View, settings: TemplateSettings) -> tuple[None, Pressure | Silence]:
    """Is there pressure? A figure that is missing is "unknown", never calm and never pressure."""
    pressure = near(view, settings)
    if pressure is None:
        return None, "unknown"
    return None, pressure if pressure.observed < pressure.threshold else "calm"


def near(view: View, settings: TemplateSettings) -> Pressure | None:
    """How far off is it? The pressure with what is observed now, met or not; `sublet explain` asks for it too."""
    node = view.sample.node_reading
    if node.memory_available_bytes is None or node.memory_total_bytes is None:
        return None
    least = settings.least_available_ratio * node.memory_total_bytes
    return Pressure(
        hard=True,
        scope="memory.available",
        observed=node.memory_available_bytes,
        threshold=least,
        below=True,
        why=Reason(
            rule="available memory below its share",
            numbers={"available_bytes": node.memory_available_bytes, "least_bytes": least},
        ),
    )


def rank(view: View, _pressure: Pressure, _settings: TemplateSettings) -> tuple[Candidate, ...]:
    """Who would relieve it? First to go first, in an order that ends in the name; a pod of unknown use is left out."""
    using = [
        (r.pod, used)
        for r in view.pods
        if r.pod.qos == "reclaimed_cores" and (used := r.memory_usage_bytes) is not None
    ]
    return tuple(
        Candidate(pod, Reason(rule="largest use first", numbers={"usage_bytes": used}))
        for pod, used in sorted(using, key=lambda item: (-item[1], item[0].key, item[0].uid))
    )


PLUGIN = Plugin(
    name="template-eviction-plugin",
    settings=TemplateSettings,
    start=lambda: None,
    evaluate=evaluate,
    rank=rank,
    near=near,
)
