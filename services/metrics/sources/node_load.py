"""Read the kernel's load average of the whole node, from `/proc/loadavg`."""

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import Target
from services.metrics.core.source import Host, Source


def _read(host: Host, target: Target) -> dict[str, float]:  # noqa: ARG001 - there is one node
    text = host.text("proc/loadavg")
    if text is None:
        return {}
    one, five, _ = text.split(None, 2)
    return {"load1": float(one), "load5": float(five)}


SOURCE = Source({"node": (Gauge("load1"), Gauge("load5"))}, _read)
