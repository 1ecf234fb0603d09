"""What a round of every service costs on large machines: one sample, and all that follows from it.

    python -m bench.service_passes

The five services run in one process over a simulated machine, in virtual time. Its files are plain ones in memory;
those of a kernel take longer to read, which bench/metrics_pass.py shows.
"""

import asyncio
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from bench.rigs import qrm_rest
from bench.rigs.report import Row, machine, progress
from shared.contracts.services import NODE_SERVICES, SERVICES
from shared.telemetry import setup_logging
from sublet.sim.run import IN_MEMORY, TICK_S, SimulationRun
from sublet.sim.scenario import Scenario, read_scenario
from sublet.sim.virtual_time import VirtualTimeLoop

SIZES = ((48, 50), (128, 110), (256, 110), (512, 110), (512, 250))
"""CPUs and pods."""
TARGET = "the last 30 ms"
SETTLE_S, SPAN_S = 12, 10
MESSAGES = "messages"
"""Decoding them, for all who listen, and the loop's own work."""
OTHERS = "others"
"""Who is no service: the simulated machine, and the runner's own tasks."""
Result = TypeVar("Result")
Args = TypeVarTuple("Args")


@dataclass
class Spent:
    """CPU seconds by who has spent them, for each second of virtual time."""

    by: dict[str, defaultdict[int, float]] = field(default_factory=dict)

    def add(self, who: str, at_s: float, took_s: float) -> None:
        """Count what somebody has spent."""
        self.by.setdefault(who, defaultdict(float))[int(at_s / TICK_S)] += took_s

    def median_ms(self, who: str) -> float:
        """A round's milliseconds, once the machine is settled."""
        return statistics.median(self.by[who][SETTLE_S + second] for second in range(SPAN_S)) * 1000


class TimedSteps(Coroutine[Any, Any, Result]):
    """A coroutine that counts the CPU time of its own steps, not that of others which run while it waits."""

    def __init__(self, inner: Coroutine[Any, Any, Result], count: Callable[[float], None]) -> None:
        self._inner, self._count = inner, count

    def send(self, value: Any) -> Any:
        """Go on to the next wait."""
        return self._timed(lambda: self._inner.send(value))

    def throw(self, *error: Any) -> Any:
        """Go on with an error."""
        return self._timed(lambda: self._inner.throw(*error))

    def close(self) -> None:
        """End."""
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Result]:
        return self._inner.__await__()

    def _timed(self, step: Callable[[], Any]) -> Any:
        began_s = time.thread_time()
        try:
            return step()
        finally:
            self._count(time.thread_time() - began_s)


class CountingLoop(VirtualTimeLoop):
    """Virtual time, and the CPU time of each service: of its task and of all that this one starts."""

    def __init__(self) -> None:
        super().__init__()
        self.spent = Spent()
        self._in_tasks_s = 0.0
        self._parents: dict[asyncio.Task[Any], asyncio.Task[Any] | None] = {}

    def create_task(self, coro: Any, **named: Any) -> asyncio.Task[Any]:
        """Start a task that is counted."""
        parent = asyncio.current_task(self) if self.is_running() else None
        task = super().create_task(TimedSteps(coro, self._count), **named)
        self._parents[task] = parent
        return task

    def call_soon(
        self, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback soon; what it spends outside of tasks counts for messages, which reach services so."""
        return super().call_soon(self._called, callback, *args, context=context)

    def _called(self, callback: Callable[[*Args], object], *args: *Args) -> None:
        began_s, in_tasks_s = time.thread_time(), self._in_tasks_s
        callback(*args)
        took_s = time.thread_time() - began_s - (self._in_tasks_s - in_tasks_s)
        self.spent.add(MESSAGES, self.time(), took_s)

    def _count(self, took_s: float) -> None:
        self._in_tasks_s += took_s
        self.spent.add(self._who(asyncio.current_task(self)), self.time(), took_s)

    def _who(self, task: asyncio.Task[Any] | None) -> str:
        """The service whose task it is, or whose task has started it."""
        while task is not None:
            if (name := task.get_name()) in SERVICES:
                return name
            task = self._parents.get(task)
        return OTHERS


def scenario(cpus: int, pods: int) -> Scenario:
    """Half tenants, half batch pods, each with one busy worker."""

    def manifest(number: int) -> dict[str, Any]:
        level = "reclaimed_cores" if number % 2 else "shared_cores"
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number}", "annotations": {"katalyst.kubewharf.io/qos_level": level}},
            "spec": {"containers": [{"name": "main", "command": ["stress", "-c", "1"]}]},
        }

    machine = {"sockets": 2, "numa_per_socket": 2, "cores_per_numa": cpus // 8, "threads": 2, "memory": f"{cpus * 4}Gi"}
    steps = [
        {"at_s": 0, "apply": [manifest(number) for number in range(pods)]},
        {"at_s": SETTLE_S + SPAN_S + 1, "say": "the end"},
    ]
    return read_scenario({"name": f"cpus-{cpus}", "machine": machine, "steps": steps}, source="bench")


def spent(cpus: int, pods: int) -> Spent:
    """Live through it.

    Raises:
        RuntimeError: the simulated machine says that something went wrong.
    """
    loop = CountingLoop()
    with (
        tempfile.TemporaryDirectory(prefix="sublet-bench-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder,
        asyncio.Runner(loop_factory=lambda: loop) as runner,
    ):
        report = runner.run(SimulationRun(scenario(cpus, pods), Path(folder)).play())
    if report.problems:
        raise RuntimeError("; ".join(report.problems[:5]))
    return loop.spent


def curve(sizes: Sequence[tuple[int, int]]) -> dict[str, list[float]]:
    """Milliseconds of a round, by service, for each size."""
    setup_logging("bench", "sim", as_json=False, level="error")
    found: dict[str, list[float]] = {who: [] for who in (*NODE_SERVICES, MESSAGES)}
    for cpus, pods in sizes:
        progress(f"a round of every service, {cpus} CPUs, {pods} pods")
        here = spent(cpus, pods)
        for who, figures in found.items():
            figures.append(here.median_ms(who))
    return found


async def measure(sizes: Sequence[tuple[int, int]] = SIZES) -> list[Row]:
    """Rows of the table of `make bench`: a service each, its curve over the sizes."""
    found = await asyncio.to_thread(curve, sizes)
    named = ", ".join(f"{cpus}/{pods}" for cpus, pods in sizes)
    return await asyncio.to_thread(qrm_rest.rows) + [
        Row(f"a round of {who}, CPUs/pods {named}", " / ".join(f"{one:.1f}" for one in figures) + " ms", SPAN_S, TARGET)
        for who, figures in found.items()
    ]


async def main() -> None:
    """Print the table."""
    print(f"a round of every service, median of {SPAN_S}, CPU time; {machine()}\n")
    for row in await measure():
        print(f"| {row.what} | {row.figure} |")


if __name__ == "__main__":
    asyncio.run(main())
