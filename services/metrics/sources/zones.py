"""Read the kernel's watermarks of each NUMA node, summed over its zones, from `/proc/zoneinfo`.

Below `low` kswapd wakes and works until `high`; below `min` tasks reclaim for themselves. They change when
`vm.min_free_kbytes` or `vm.watermark_scale_factor` is written or memory is plugged in.
"""

import os
import re

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import Target
from services.metrics.core.reads.gates import Gate
from services.metrics.core.source import Host, Source

_FILE = "proc/zoneinfo"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_ZONE = re.compile(r"^Node (\d+), zone +\w+$", re.MULTILINE)
_MARK = re.compile(r"^ +(min|low|high) +(\d+)$", re.MULTILINE)
"""The marks stand right after "pages free"; the high mark of a CPU's own list ("high: 42") has a colon."""


def _marks(host: Host, path: str) -> dict[str, dict[str, int]]:
    """Bytes by NUMA node and mark."""
    _, *zones = _ZONE.split(host.text(path) or "")
    found: dict[str, dict[str, int]] = {}
    for numa, text in zip(zones[::2], zones[1::2], strict=True):
        marks = found.setdefault(numa, {})
        for mark, pages in _MARK.findall(text):
            marks[mark] = marks.get(mark, 0) + int(pages) * _PAGE_BYTES
    return found


def _read(host: Host, target: Target) -> dict[str, int]:
    marks = host.once(_marks, _FILE).get(target.name, {})
    return {f"watermark_{mark}_bytes": value for mark, value in marks.items()}


SOURCE = Source(
    {"numa": tuple(Gauge(f"watermark_{mark}_bytes") for mark in ("min", "low", "high"))},
    _read,
    cost="dear",  # the file tells of every zone's list for every CPU
    gates={"numa": Gate(60.0)},
)
