"""Read the memory of a cgroup with everything below it: one number, in every pass.

Its parts are read by `memory_stat`, when this number has moved.
"""

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import ALL_GROUPS, Target
from services.metrics.core.source import Host, Source
from shared.core.cgroups.knobs import Version

FILES: dict[Version, str] = {1: "memory.usage_in_bytes", 2: "memory.current"}


def _read(host: Host, target: Target) -> dict[str, int]:
    usage = host.group_text(target, FILES[host.version], "memory")
    return {} if usage is None else {"memory_usage_bytes": int(usage)}


SOURCE = Source(
    dict.fromkeys(ALL_GROUPS, (Gauge("memory_usage_bytes"),)), _read, adds_up=frozenset({"memory_usage_bytes"})
)
