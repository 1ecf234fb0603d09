"""Read the CPU time of a cgroup: `cpuacct.usage` on v1, `usage_usec` of `cpu.stat` on v2."""

from services.metrics.core.figures.figure import Rate
from services.metrics.core.figures.target import ALL_GROUPS, USAGE_COUNTER, Target
from services.metrics.core.figures.values import Value
from services.metrics.core.source import Host, Source
from shared.core.cgroups.knobs import Version
from shared.core.text.kernel_text import key_values

FILES: dict[Version, tuple[str, str]] = {1: ("cpuacct", "cpuacct.usage"), 2: ("cpu", "cpu.stat")}
"""Controller and file by cgroup version."""


def usage_ns(text: str | None, version: Version) -> int | None:
    """Return the CPU time so far in nanoseconds; None if the file is missing or unreadable."""
    if text is None:
        return None
    if version == 1:
        return int(text)
    usage_us = key_values(text, ("usage_usec",)).get("usage_usec")
    return None if usage_us is None else usage_us * 1000


def _read(host: Host, target: Target) -> dict[str, Value]:
    controller, name = FILES[host.version]
    usage = usage_ns(host.group_text(target, name, controller), host.version)
    return {} if usage is None else {USAGE_COUNTER: usage}


SOURCE = Source(
    dict.fromkeys(ALL_GROUPS, (Rate("cpu_usage_cores", of=USAGE_COUNTER, scale=1e-9),)),
    _read,
    adds_up=frozenset({USAGE_COUNTER}),
)
