"""Memory of a cgroup with everything below it.

Working set is usage without the inactive file cache, as kubelet and cAdvisor count it.
"""

from services.metrics.core.figures import GROUPS, Gauge, Target, Value
from services.metrics.host import Host, Source
from shared.adapters.hostfs import key_values
from shared.core.knobs import Version

_USAGE_FILE: dict[Version, str] = {1: "memory.usage_in_bytes", 2: "memory.current"}
_STAT_NAMES: dict[Version, tuple[str, str, str]] = {
    1: ("total_rss", "total_cache", "total_inactive_file"),
    2: ("anon", "file", "inactive_file"),
}
"""What `memory.stat` calls anonymous memory, page cache, and the part of the cache not used lately."""


def _read(host: Host, target: Target) -> dict[str, Value]:
    found: dict[str, Value] = {}
    usage_text = host.group_text(target, _USAGE_FILE[host.version], "memory")
    names = _STAT_NAMES[host.version]
    stat = key_values(host.group_text(target, "memory.stat", "memory") or "", names)
    rss, cache, inactive_file = (stat.get(name) for name in names)
    if rss is not None:
        found["memory_rss_bytes"] = rss
    if cache is not None:
        found["memory_cache_bytes"] = cache
    if usage_text is not None:
        usage = int(usage_text)
        found["memory_usage_bytes"] = usage
        if inactive_file is not None:
            found["memory_working_set_bytes"] = max(0, usage - inactive_file)
    return found


_NAMES = ("memory_usage_bytes", "memory_rss_bytes", "memory_cache_bytes", "memory_working_set_bytes")
SOURCE = Source(dict.fromkeys(GROUPS, tuple(Gauge(name) for name in _NAMES)), _read)
