"""Read the memory of the whole node: `/proc/meminfo` and the watermark scale factor."""

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import Target
from services.metrics.core.source import Host, Source
from shared.core.text.kernel_text import meminfo_bytes

_MEMINFO = {
    "MemTotal": "memory_total_bytes",
    "MemFree": "memory_free_bytes",
    "MemAvailable": "memory_available_bytes",
}


def _read(host: Host, target: Target) -> dict[str, int]:  # noqa: ARG001 - there is one node
    fields = meminfo_bytes(host.text("proc/meminfo") or "", _MEMINFO)
    found = {_MEMINFO[name]: value for name, value in fields.items()}
    scale = host.text("proc/sys/vm/watermark_scale_factor")
    if scale is not None:
        found["watermark_scale_factor"] = int(scale)
    return found


_NAMES = (*_MEMINFO.values(), "watermark_scale_factor")
SOURCE = Source({"node": tuple(Gauge(name) for name in _NAMES)}, _read, cost="moderate")
