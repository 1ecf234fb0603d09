"""Read the parts of a cgroup's memory, and how much of it is read back after it was reclaimed.

Working set is usage without the inactive file cache, as kubelet and cAdvisor count it.
"""

from services.metrics.core.figures.figure import Gauge, Rate
from services.metrics.core.figures.target import ALL_GROUPS, Target
from services.metrics.core.reads.gates import GREW, PAUSE_S, Gate
from services.metrics.core.source import Host, Source
from services.metrics.sources.memory import FILES
from shared.core.cgroups.knobs import Version
from shared.core.text.kernel_text import key_values

_PARTS = ("memory_rss_bytes", "memory_cache_bytes", "memory_shmem_bytes")
_INACTIVE: dict[Version, str] = {1: "total_inactive_file", 2: "inactive_file"}
_NAMES: dict[Version, tuple[str, str, str]] = {
    1: ("total_rss", "total_cache", "total_shmem"),
    2: ("anon", "file", "shmem"),
}
"""Names in `memory.stat` of anonymous memory, page cache, and shared memory within the cache."""
_REFAULTS: dict[Version, tuple[str, ...]] = {
    1: ("total_workingset_refault_anon", "total_workingset_refault_file", "total_workingset_refault"),
    2: ("workingset_refault_anon", "workingset_refault_file", "workingset_refault"),
}
"""One counter until Linux 5.8, two since."""


def _read(host: Host, target: Target) -> dict[str, int]:
    text = host.group_text(target, "memory.stat", "memory") or ""
    names, inactive_name, refault_names = _NAMES[host.version], _INACTIVE[host.version], _REFAULTS[host.version]
    stat = key_values(text, (*names, inactive_name, *refault_names))
    found = {figure: stat[name] for figure, name in zip(_PARTS, names, strict=True) if name in stat}
    usage, inactive = host.group_text(target, FILES[host.version], "memory"), stat.get(inactive_name)
    if usage is not None and inactive is not None:
        # Two files, read one after the other: cache may have gone in between.
        found["memory_working_set_bytes"] = max(0, int(usage) - inactive)
    refaults = [stat[name] for name in refault_names if name in stat]
    if refaults:
        found["refault_pages"] = sum(refaults)
    return found


_LEVELS = (*_PARTS, "memory_working_set_bytes")
_GATE = Gate(30.0, (GREW,), PAUSE_S)
SOURCE = Source(
    dict.fromkeys(
        ALL_GROUPS,
        (
            *(Gauge(name) for name in _LEVELS),
            Rate("refault_pages_per_s", of="refault_pages"),
        ),
    ),
    _read,
    cost="moderate",
    gates=dict.fromkeys(ALL_GROUPS, _GATE),
    adds_up=frozenset(_LEVELS),
)
