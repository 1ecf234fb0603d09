"""Read how often, and on how many CPUs, a cgroup was held back by its own quota (`cpu.stat` on v1 and v2)."""

from services.metrics.core.figures.figure import Rate, Ratio
from services.metrics.core.figures.target import GROUPS, Target
from services.metrics.core.reads.gates import PAUSE_S, WORKED, Gate
from services.metrics.core.source import Host, Source
from shared.core.text.kernel_text import key_values

_PERIODS, _THROTTLED_NS = "nr_periods", "throttled_ns"
_TIMES = {"throttled_time": 1, "throttled_usec": 1000}
"""Time of all CPUs together, its unit in nanoseconds, on v1 and v2 (docs/facts/linux-cpu.md#throttled-time)."""
_COUNTERS = ("nr_throttled", _PERIODS, *_TIMES)


def _read(host: Host, target: Target) -> dict[str, int]:
    found = key_values(host.group_text(target, "cpu.stat", "cpu") or "", _COUNTERS)
    times = [found.pop(name) * unit for name, unit in _TIMES.items() if name in found]
    # Most containers have no quota: one figure less in the message of each.
    return {**found, _THROTTLED_NS: times[0]} if times and found.get(_PERIODS) else found


_RATIO = Ratio("throttled_ratio", of="nr_throttled", over=_PERIODS)
SOURCE = Source(
    {"pool": (_RATIO,), "container": (_RATIO, Rate("throttled_cores", of=_THROTTLED_NS, scale=1e-9))},
    _read,
    gates=dict.fromkeys(GROUPS, Gate(30.0, (WORKED,), batch_pause_s=PAUSE_S)),
)
