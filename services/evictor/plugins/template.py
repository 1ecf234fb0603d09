"""Plugin to copy: evicts the largest reclaimed pod when available memory falls below a share of the total.

The plugin is complete and works, but it is off by default: `memory_pressure` uses the watermarks of the kernel itself.
docs/writing-an-eviction-plugin.md explains it line by line.
"""

from typing import Annotated

from pydantic import Field

from sublet.api.plugin import Candidate, Plugin, PluginSettings, Pressure, Reason, Silence, View


class TemplateSettings(PluginSettings):
    """1. Settings: each field has a type, bounds and a sentence. Users set `evictor.plugins.<file>.<field>`."""

    enabled: bool = False
    least_available_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Share of the memory below which available memory is pressure."""


def evaluate(_memory: None, view: View, settings: TemplateSettings) -> tuple[None, Pressure | Silence]:
    """2. Decide whether there is pressure. A missing figure is "unknown", never "calm" and never a pressure.

    The first value returned is what the plugin remembers until the next sample. This plugin remembers nothing.
    """
    pressure = near(view, settings)
    if pressure is None:
        return None, "unknown"
    return None, pressure if pressure.observed < pressure.threshold else "calm"


def near(view: View, settings: TemplateSettings) -> Pressure | None:
    """3. Return the pressure with the current observation, whether the threshold is met or not.

    `sublet explain` calls this function to show the distance to the threshold. `evaluate` calls it too, so the
    explanation always matches the decision.
    """
    node = view.sample.node_reading
    if node.memory_available_bytes is None or node.memory_total_bytes is None:
        return None
    least = settings.least_available_ratio * node.memory_total_bytes
    return Pressure(
        # Hard pressure evicts pods. Soft pressure taints the node, or asks for one pod.
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
    """4. Rank the pods that would relieve the pressure, the first to evict first. Leave out pods of unknown use.

    Do not filter protected pods here: the arbiter checks every candidate against its guards.
    """
    using = [
        (r.pod, used)
        for r in view.pods
        if r.pod.qos == "reclaimed_cores" and (used := r.memory_usage_bytes) is not None
    ]
    return tuple(
        Candidate(pod, Reason(rule="largest use first", numbers={"usage_bytes": used}))
        # Name and UID break ties, so the order never depends on the order of the sample.
        for pod, used in sorted(using, key=lambda item: (-item[1], item[0].key, item[0].uid))
    )


# 5. Events and conditions use this name. Settings use the file name.
PLUGIN = Plugin(
    name="template-eviction-plugin",
    settings=TemplateSettings,
    start=lambda: None,
    evaluate=evaluate,
    rank=rank,
    near=near,
)
