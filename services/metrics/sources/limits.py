"""Read the limits of a cgroup. "No limit" is absent: it is neither 0 nor a very large number."""

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import GROUPS, Target
from services.metrics.core.reads.gates import Gate
from services.metrics.core.source import Host, Source

_V1_NO_LIMIT_BYTES = 1 << 62
"""v1 prints the largest multiple of a page that fits into a long, about 2^63."""


def _read(host: Host, target: Target) -> dict[str, float]:
    quota_us, period_us = _cpu_v1(host, target) if host.version == 1 else _cpu_v2(host, target)
    name = "memory.limit_in_bytes" if host.version == 1 else "memory.max"
    memory = (host.group_text(target, name, "memory", seldom=True) or "max").strip()
    found: dict[str, float] = {}
    if quota_us > 0 and period_us > 0:
        found["cpu_limit_cores"] = quota_us / period_us
    if memory != "max" and int(memory) < _V1_NO_LIMIT_BYTES:
        found["memory_limit_bytes"] = int(memory)
    return found


def _cpu_v1(host: Host, target: Target) -> tuple[int, int]:
    quota, period = (host.group_text(target, f"cpu.cfs_{name}_us", "cpu", seldom=True) for name in ("quota", "period"))
    return int(quota or -1), int(period or 0)


def _cpu_v2(host: Host, target: Target) -> tuple[int, int]:
    words = (host.group_text(target, "cpu.max", "cpu", seldom=True) or "max 0").split()
    return -1 if words[0] == "max" else int(words[0]), int(words[1])


SOURCE = Source(
    dict.fromkeys(GROUPS, (Gauge("cpu_limit_cores"), Gauge("memory_limit_bytes"))),
    _read,
    cost="moderate",
    gates=dict.fromkeys(GROUPS, Gate(60.0)),
)
