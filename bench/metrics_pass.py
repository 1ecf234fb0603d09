"""Cost of metrics: CPU time of a pass and of a probe with many pods, at rest and while every pod works.

    python -m bench.metrics_pass [pods]

Passes are made one after the other on a clock that moves a period each time, so that what is read seldom is. The share
of a core is that of the period: two seconds at work, three at rest.
"""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from bench.rigs.metrics import PERIOD_S, PROBE_S, REST_PERIOD_S, TASKS, Rig, generated, moving, rig
from bench.rigs.report import Row

PODS = 50
ROUNDS, SETTLE = 100, 20


def microseconds(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median and 99th percentile of the CPU time of one call."""
    spent = []
    for _ in range(rounds):
        before = time.process_time_ns()
        work()
        spent.append((time.process_time_ns() - before) / 1000)
    return statistics.median(spent), statistics.quantiles(spent, n=100)[98]


def passes(here: Rig, *, busy: bool) -> tuple[float, float, int]:
    """Median and 99th percentile of a pass, and the bytes of a sample."""
    if busy:
        here.start(moving())
    for _ in range(SETTLE):
        size = len(here.one_pass())
    return *microseconds(here.one_pass, ROUNDS), size


async def measure() -> list[Row]:
    """Rows of the table of `make bench`."""
    with rig(PODS) as here:
        at_rest, _, size = passes(here, busy=False)
        probe, _ = microseconds(here.tripwire.probe, 10 * ROUNDS)
        working, _, _ = passes(here, busy=True)
    share = at_rest / 1e6 / REST_PERIOD_S + probe / 1e6 / PROBE_S
    return [
        Row(f"metrics pass, {PODS} pods at rest / all working", f"{at_rest:.0f} / {working:.0f} us", ROUNDS, ""),
        Row(f"metrics, passes and probes, {PODS} pods at rest", f"{share:.2%} of a core", ROUNDS, "below 1 %"),
        Row(f"sample of {PODS} pods", f"{size / 1000:.0f} kB", 1, ""),
    ]


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else PODS
    machine = f"{os.cpu_count()} CPUs {platform.machine()}, Linux {platform.release()}, {platform.python_version()}"
    print(f"metrics, {count} pods of {TASKS} tasks, N = {ROUNDS}, {datetime.now(UTC):%Y-%m-%d}, {machine}\n")
    print("| host | pods | pass us (p99) | probe us (p99) | sample bytes | of a core |")
    print("|---|---|---|---|---|---|")
    makers: tuple[Callable[[], AbstractContextManager[Rig]], ...] = (
        lambda: rig(count),
        lambda: generated(1, count),
        lambda: generated(2, count),
    )
    for make in makers:
        with make() as here:
            probe, probe_p99 = microseconds(here.tripwire.probe, 10 * ROUNDS)
            for busy in (False, True):
                one_pass, p99, size = passes(here, busy=busy)
                share = one_pass / 1e6 / (PERIOD_S if busy else REST_PERIOD_S) + probe / 1e6 / PROBE_S
                print(f"| {here.what} | {'all working' if busy else 'at rest'} | {one_pass:.0f} ({p99:.0f}) "
                      f"| {probe:.0f} ({probe_p99:.0f}) | {size} | {share:.2%} |")  # fmt: skip


if __name__ == "__main__":
    main()
