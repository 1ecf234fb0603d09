"""One case of the story: the service under steady, spiking and again steady load, beside whatever else runs."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sublet.demo.batch import units
from sublet.demo.load import TIMEOUT_S, PageResponse, RequestLoad, percentile
from sublet.demo.machine.fit import CaseNoise, DemoLoads
from sublet.demo.machine.reading import NoiseWatch
from sublet.demo.watch import PoolChange, TimelineRecorder, TimelineRow, busy_seconds

STEADY_S, SPIKE_S, AFTER_S = 7.0, 6.0, 3.0
CALM_TIMEOUT_S, CALM_TICK_S = 25.0, 0.2

Calm = Callable[[], bool]


@dataclass
class DemoCase:
    """What was measured in one case; times in seconds of this machine's monotonic clock."""

    name: str
    title: str
    started_s: float = 0.0
    spike_s: float = 0.0
    spike_end_s: float = 0.0
    ended_s: float = 0.0
    cpu_utilization: float = 0.0
    batch_units: int = 0
    answers: list[PageResponse] = field(default_factory=list)
    moments: list[TimelineRow] = field(default_factory=list)
    changes: list[PoolChange] = field(default_factory=list)
    noise: CaseNoise = field(default_factory=CaseNoise)

    def latencies_ms(self, first_s: float, last_s: float) -> list[float]:
        """Latencies of the requests due in a span; an unanswered one counts as the time it was waited for."""
        return [
            (TIMEOUT_S if a.latency_s is None else a.latency_s) * 1000
            for a in self.answers
            if first_s <= a.due_s < last_s
        ]

    @property
    def shrink_s(self) -> float | None:
        """From the spike's first request to the first smaller CPU list read back; None if none came in the spike."""
        for change in self.changes:
            if change.smaller and self.spike_s <= change.at_s <= self.spike_end_s:
                return change.at_s - self.spike_s
        return None

    def summary(self) -> dict[str, Any]:
        """The figures of this case for the report."""
        spans = {"steady": (self.started_s, self.spike_s), "spike": (self.spike_s, self.spike_end_s)}
        rows: dict[str, Any] = {"title": self.title, "cpu_utilization_percent": round(self.cpu_utilization * 100, 1)}
        for name, (first, last) in spans.items():
            values = self.latencies_ms(first, last)
            rows[f"{name}_requests"] = len(values)
            rows[f"{name}_p50_ms"] = _rounded(percentile(values, 50))
            rows[f"{name}_p99_ms"] = _rounded(percentile(values, 99))
        rows["others_cores"] = round(self.noise.others_cores, 2)
        rows["steal_percent"] = round(self.noise.steal_percent, 1)
        rows["unanswered"] = sum(a.latency_s is None for a in self.answers)
        rows["batch_units_per_s"] = round(self.batch_units / max(self.ended_s - self.started_s, 1e-9), 1)
        return rows


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


async def measure(case: DemoCase, port: int, loads: DemoLoads, counters: Sequence[Path], calm: Calm) -> None:
    """Run the load of one case against a service that listens, and fill the case in.

    Whatever else the machine does can look like a spike: the steady load goes on until `calm`, for a bounded time.
    """
    load, watch, noise = RequestLoad(port), TimelineRecorder(list(counters)), NoiseWatch()
    watch.start()
    units_before, busy_before = sum(map(units, counters)), busy_seconds()
    case.started_s = time.monotonic()
    await load.run(loads.steady_per_s, STEADY_S)
    while not calm() and time.monotonic() < case.started_s + STEADY_S + CALM_TIMEOUT_S:
        await load.run(loads.steady_per_s, CALM_TICK_S)
    case.spike_s = time.monotonic()
    await load.run(loads.spike_per_s, SPIKE_S)
    case.spike_end_s = time.monotonic()
    await load.run(loads.steady_per_s, AFTER_S)
    await load.finish()
    case.ended_s = time.monotonic()
    await asyncio.to_thread(watch.stop)
    cpus = len(os.sched_getaffinity(0))
    case.cpu_utilization = (busy_seconds() - busy_before) / (case.ended_s - case.started_s) / cpus
    case.batch_units = sum(map(units, counters)) - units_before
    case.answers, case.moments, case.changes = load.answers, watch.moments, watch.changes
    case.noise = noise.noise()
