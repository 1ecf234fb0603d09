"""Detects that less than a share of the memory is available: the largest reclaimed pod goes.

This is the plugin to copy. It is complete and it works, but it is off by default: `memory_pressure` watches what the
kernel itself goes by. docs/writing-an-eviction-plugin.md explains it line by line.
"""

from typing import Annotated

from pydantic import Field

from sublet.api.plugin import Candidate, Plugin, PluginSettings, Pressure, Reason, Silence, View


class TemplateSettings(PluginSettings):
    """1. Settings: a type, bounds and a sentence for each. Users set `evictor.plugins.<file>.<field>`."""

    enabled: bool = False
    least_available_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Less of the memory available than this is pressure."""


def evaluate(_memory: None, view: View, settings: TemplateSettings) -> tuple[None, Pressure | Silence]:
    """2. Is there pressure? A figure that is missing is "unknown", never calm and never pressure.

    The first value is what the plugin remembers to the next sample: this one nothing.
    """
    pressure = near(view, settings)
    if pressure is None:
        return None, "unknown"
    return None, pressure if pressure.observed < pressure.threshold else "calm"


def near(view: View, settings: TemplateSettings) -> Pressure | None:
    """3. How far off is it? The pressure with what is observed now, met or not; `sublet explain` asks for it too.

    `evaluate` rests on it, so that what is explained and what is done cannot differ.
    """
    node = view.sample.node_reading
    if node.memory_available_bytes is None or node.memory_total_bytes is None:
        return None
    least = settings.least_available_ratio * node.memory_total_bytes
    return Pressure(
        # Hard pressure evicts; soft pressure taints the node, or asks for one pod.
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
    """4. Who would relieve it? The first to go comes first; a pod whose use is not known is left out.

    Protected pods need no thought here: the arbiter asks its guards about every candidate.
    """
    using = [
        (r.pod, used)
        for r in view.pods
        if r.pod.qos == "reclaimed_cores" and (used := r.memory_usage_bytes) is not None
    ]
    return tuple(
        Candidate(pod, Reason(rule="largest use first", numbers={"usage_bytes": used}))
        # Name and UID last: two pods of the same use stand in the same order whatever the sample's is.
        for pod, used in sorted(using, key=lambda item: (-item[1], item[0].key, item[0].uid))
    )


# 5. The name by which events and conditions call the plugin; the file's name is that of its settings.
PLUGIN = Plugin(
    name="template-eviction-plugin",
    settings=TemplateSettings,
    start=lambda: None,
    evaluate=evaluate,
    rank=rank,
    near=near,
)
