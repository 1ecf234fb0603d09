"""Read how hard the kernel works to find free memory, from `/proc/vmstat`: kswapd, direct reclaim, refaults."""

import re

from services.metrics.core.figures.figure import Gauge, Rate
from services.metrics.core.figures.target import Target
from services.metrics.core.source import Host, Source

_COUNTERS = {
    "pgsteal_kswapd": "kswapd_steal_pages",
    "pgsteal_direct": "direct_steal_pages",
    "workingset_refault": "refault_pages",
}
_LINE = re.compile(rf"^({'|'.join(_COUNTERS)})(?:_\w+)? (\d+)$", re.MULTILINE)
"""Steals have a line each since Linux 4.8 (before, one for each zone); refaults have two since 5.9, anon and file."""


def _read(host: Host, target: Target) -> dict[str, int]:  # noqa: ARG001 - there is one node
    found: dict[str, int] = {}
    for line, pages in _LINE.findall(host.text("proc/vmstat") or ""):
        found[_COUNTERS[line]] = found.get(_COUNTERS[line], 0) + int(pages)
    return found


SOURCE = Source(
    {
        "node": (
            Gauge("kswapd_steal_pages"),
            Rate("kswapd_steal_pages_per_s", of="kswapd_steal_pages"),
            Rate("direct_steal_pages_per_s", of="direct_steal_pages"),
            Rate("refault_pages_per_s", of="refault_pages"),
        )
    },
    _read,
    cost="dear",
)
