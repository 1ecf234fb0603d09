"""Memory of the whole node: `/proc/meminfo`, the watermark scale factor, and what kswapd has reclaimed so far."""

import re

from services.metrics.core.figures import Gauge, Target, Value
from services.metrics.host import Host, Source
from shared.adapters.hostfs import meminfo_bytes

_MEMINFO = {
    "MemTotal": "memory_total_bytes",
    "MemFree": "memory_free_bytes",
    "MemAvailable": "memory_available_bytes",
}
_KSWAPD_STEAL = re.compile(r"^pgsteal_kswapd\w* (\d+)$", re.MULTILINE)
"""One line since Linux 4.8; before, one for each zone (pgsteal_kswapd_normal, …)."""


def _read(host: Host, target: Target) -> dict[str, Value]:  # noqa: ARG001 - there is one node
    fields = meminfo_bytes(host.text("proc/meminfo") or "", _MEMINFO)
    found: dict[str, Value] = {_MEMINFO[name]: value for name, value in fields.items()}
    scale = host.text("proc/sys/vm/watermark_scale_factor")
    if scale is not None:
        found["watermark_scale_factor"] = int(scale)
    steals = _KSWAPD_STEAL.findall(host.text("proc/vmstat") or "")
    if steals:
        found["kswapd_steal_pages"] = sum(int(pages) for pages in steals)
    return found


_NAMES = (*_MEMINFO.values(), "watermark_scale_factor", "kswapd_steal_pages")
SOURCE = Source({"node": tuple(Gauge(name) for name in _NAMES)}, _read)
