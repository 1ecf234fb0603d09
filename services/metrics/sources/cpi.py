"""Read cycles per instruction of pools and containers from the counts of the last window.

The source is used only if `metrics.perf` is enabled; `services.metrics.adapters.perf_stat` counts. A pool divides the
sums over its containers, so busy containers weigh more; Katalyst uses a plain mean
(docs/facts/katalyst-metrics.md#cycles-per-instruction). What executed no instruction has no figure.
"""

from services.metrics.core.figures.figure import Figure, Quotient
from services.metrics.core.figures.target import GROUPS, Target
from services.metrics.core.source import Host, Source

_FIGURES: tuple[Figure, ...] = (Quotient("cpi", of="cycles", over="instructions"),)


def _read(host: Host, target: Target) -> dict[str, float]:
    counts = host.counts(target)
    return {} if counts is None else {"cycles": counts.cycles, "instructions": counts.instructions}


SOURCE = Source(
    dict.fromkeys(GROUPS, _FIGURES),
    _read,
    cost="cheap",
    adds_up=frozenset({"cycles", "instructions"}),
    counters=True,
)
