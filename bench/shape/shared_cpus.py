"""How long a tenant's requests take beside batch work, by the shape of the node (docs/shared-cpus.md).

Four situations take turns on cgroups that are set as qrm sets them: the tenant alone; batch work on half of the CPUs,
the tenant on the others; both on all CPUs, with batch work in the idle class; and the same with the lowest weight
instead. Requests that need no more CPUs than the tenant's pool has, and such that need all for a moment.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.rigs import request
from bench.rigs.processes import SPIN
from bench.rigs.report import Row, progress
from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import MIN_SHARES, Knob, shares_of_millis
from shared.core.cpus.cpuset import CpuSet
from sublet.demo.load import percentile

TOP = "sublet-bench-shared"
TENANT, BATCH = f"{TOP}/tenant", f"{TOP}/batch"
TURNS, SPAN_S, GAP_S, CPU_S, SEED = 8, 2.0, 0.01, 0.002, 7
TOP_SHARES = 64 * 1024
"""As 64 processes of others, so that these disturb all situations little."""
Situation = tuple[str, str, str | None, bool]
"""Its name, the tenant's CPUs, those of batch work (None: there is none), and whether that is in the idle class."""


async def measure(turns: int = TURNS, span_s: float = SPAN_S) -> list[Row]:
    """Let the situations take turns; of each every request counts."""
    cgroups = Cgroups(Path("/"))
    online = CpuSet.parse(cgroups.effective_cpus("") or "0")
    cpus = list(online)
    if len(cpus) < 2:
        return [Row("requests of a tenant beside batch work", "needs 2 CPUs", 0, "-")]
    half = CpuSet.of(cpus[: len(cpus) // 2])
    situations: list[Situation] = [
        ("alone", str(online), None, False),
        ("batch work on half of the CPUs, partitioned", str(half), str(online - half), True),
        ("batch work on all CPUs, idle class", str(online), str(online), True),
        ("batch work on all CPUs, lowest weight", str(online), str(online), False),
    ]
    sizes = (len(half), len(cpus))
    took_s: dict[tuple[int, str], list[float]] = {(size, name): [] for size in sizes for name, *_ in situations}
    for turn in range(turns):
        for size in sizes:
            for situation in situations:
                progress(f"requests of {size} CPUs: turn {turn + 1} of {turns}, {situation[0]}")
                took_s[size, situation[0]] += _requests(cgroups, situation, size, span_s, SEED + turn)
    return [_row(f"requests of {size} of {len(cpus)} CPUs, {name}", times, took_s[size, "alone"])
            for (size, name), times in took_s.items()]  # fmt: skip


def _row(what: str, took_s: list[float], alone_s: list[float]) -> Row:
    figures = [percentile(took_s, p) or 0.0 for p in (50, 99)]
    ratios = [one / (percentile(alone_s, p) or one or 1.0) for one, p in zip(figures, (50, 99), strict=True)]
    times = " / ".join(f"{ratio:.2f}" for ratio in ratios)
    words = " / ".join(f"{1000 * one:.1f}" for one in figures)
    return Row(f"{what}, p50 / p99", f"{words} ms, {times} times alone", len(took_s), "-")


def _requests(cgroups: Cgroups, situation: Situation, workers: int, span_s: float, seed: int) -> list[float]:
    _, tenant, batch, idle = situation
    words = [str(Path(request.__file__)), str(workers), str(CPU_S), str(GAP_S), str(span_s), str(seed)]
    with (
        _groups(cgroups, tenant, batch or tenant, idle=idle),
        _spinning(cgroups, (os.cpu_count() or 1) if batch else 0),
        subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as process,
    ):
        # What it starts later is in its group as well: an interpreter takes longer to start than to be moved.
        cgroups.attach(TENANT, process.pid)
        told, _ = process.communicate()
    return [float(line) for line in told.split()]


@contextmanager
def _groups(cgroups: Cgroups, tenant: str, batch: str, *, idle: bool) -> Iterator[None]:
    """The groups, in the order in which qrm sets them: weights, then sets."""
    for group in (TOP, TENANT, BATCH):
        cgroups.make(group)
    try:
        cgroups.write(TOP, Knob.CPU_SHARES, TOP_SHARES)
        cgroups.write(TENANT, Knob.CPU_SHARES, shares_of_millis(2000))
        cgroups.write(BATCH, *((Knob.CPU_IDLE, 1) if idle else (Knob.CPU_SHARES, MIN_SHARES)))
        cgroups.write(TENANT, Knob.CPUS, tenant)
        cgroups.write(BATCH, Knob.CPUS, batch)
        yield
    finally:
        for group in (BATCH, TENANT, TOP):
            cgroups.remove(group)


@contextmanager
def _spinning(cgroups: Cgroups, processes: int) -> Iterator[None]:
    started = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(processes)]
    try:
        for one in started:
            cgroups.attach(BATCH, one.pid)
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()
