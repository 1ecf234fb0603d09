"""While the whole node waits for its disk, the batch pod that writes most goes: a plugin in a wheel of its own."""

from typing import Annotated

from pydantic import Field

from sublet.api.plugin import Candidate, Plugin, PluginSettings, PodReading, Pressure, Reason, Silence, View


class Settings(PluginSettings):
    """How much waiting is too much."""

    stalled_percent: Annotated[float, Field(gt=0, le=100)] = 40.0
    """Share of the last 10 s in which every task on the node waited for the disk."""


def evaluate(_memory: None, view: View, settings: Settings) -> tuple[None, Pressure | Silence]:
    """Compare the kernel's stall share with the limit; a kernel that does not tell it is "unknown"."""
    stall = view.sample.node_reading.io_pressure
    if stall is None:
        return None, "unknown"
    # "full": every task waits. One busy writer alone is enough for "some".
    stalled = stall.full_avg10_percent
    if stalled < settings.stalled_percent:
        return None, "calm"
    return None, Pressure(
        hard=True,
        scope="io.full",
        observed=stalled,
        threshold=settings.stalled_percent,
        why=Reason(rule="every task waits for the disk", numbers={"stalled_percent": stalled}),
    )


def rank(view: View, _pressure: Pressure, _settings: Settings) -> tuple[Candidate, ...]:
    """Reclaimed pods that write, the fastest first, then by name."""
    writing = [(r.pod, _written(r)) for r in view.pods if r.pod.qos == "reclaimed_cores"]
    return tuple(
        Candidate(pod, Reason(rule="writes most", numbers={"write_bytes_per_s": rate}))
        for pod, rate in sorted(writing, key=lambda item: (-item[1], item[0].key, item[0].uid))
        # The end of a pod that writes nothing would not help, and of one that is not measured it is not known.
        if rate > 0
    )


def _written(reading: PodReading) -> float:
    return sum(c.disk_write_bytes_per_s or 0.0 for c in reading.containers)


PLUGIN = Plugin(name="disk-stall-eviction-plugin", settings=Settings, start=lambda: None, evaluate=evaluate, rank=rank)
