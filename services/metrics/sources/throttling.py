"""Read the share of the scheduling periods in which a cgroup hit its quota (`cpu.stat`, same names on v1 and v2)."""

from services.metrics.core.figures.figure import Ratio
from services.metrics.core.figures.target import GROUPS, Target
from services.metrics.core.reads.gates import WORKED, Gate
from services.metrics.core.source import Host, Source
from shared.core.text.kernel_text import key_values

_COUNTERS = ("nr_throttled", "nr_periods")


def _read(host: Host, target: Target) -> dict[str, int]:
    return key_values(host.group_text(target, "cpu.stat", "cpu") or "", _COUNTERS)


SOURCE = Source(
    dict.fromkeys(GROUPS, (Ratio("throttled_ratio", of="nr_throttled", over="nr_periods"),)),
    _read,
    gates=dict.fromkeys(GROUPS, Gate(30.0, (WORKED,))),
)
