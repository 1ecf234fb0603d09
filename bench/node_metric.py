"""How often the NodeMetric of a node of 50 pods is written, how large it is, and what of a CPU it takes.

    python -m bench.node_metric

An hour of virtual time with a sample each second, over objects in memory. At rest all figures move by a percent; at
work each pod uses something else each minute.
"""

import asyncio
import json
import random
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bench.rigs.report import Row, print_rows, progress
from services.reporter.core.node_metric.collect_policy import CollectPolicy
from services.reporter.core.node_metric.figures import node_metric_figures
from services.reporter.core.node_metric.status import node_metric_status
from services.reporter.core.node_metric.usage_series import BYTES_PER_SLOT
from services.reporter.core.node_metric.usage_windows import UsageWindows
from services.reporter.reports.node_metric import NodeMetricReport
from services.reporter.settings import NodeMetricSettings, ReporterSettings
from shared.adapters.clock import LoopClock
from shared.contracts.pod import Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading
from shared.core.api_kind import ApiKind
from shared.core.node_mode import NodeSwitch
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects
from shared.wire import Wire
from sublet.sim.virtual_time import VirtualTimeLoop

PODS, CROWD = 50, 250
MINUTES, ROUNDS = 60, 50
SETTINGS = ReporterSettings(node_metric=NodeMetricSettings(enabled=True))
REST_PERCENT = 1.0
GIB = 1 << 30
ENVELOPE = {"node": "bench", "boot_id": "0" * 16, "sent_at": datetime(2026, 1, 1, tzinfo=UTC)}


class CountedObjects(MemoryObjects):
    """Counts what is written, as it is sent."""

    sizes: list[int]

    def __init__(self) -> None:
        super().__init__(LoopClock())
        self.sizes = []

    async def apply(
        self, kind: ApiKind, document: Mapping[str, Any], *, manager: str, status: bool = False
    ) -> dict[str, Any]:
        """Write it, and note its size."""
        self.sizes.append(len(json.dumps({**kind.head, **document})))
        return await super().apply(kind, document, manager=manager, status=status)


@dataclass(frozen=True, slots=True)
class Load:
    """What the pods use: each second a little more or less, each minute something else where they are at work."""

    at_work: bool
    roll: random.Random

    def levels(self) -> list[float]:
        """Of each pod, cores."""
        return [self.roll.uniform(0.05, 2.0) for _ in range(PODS)]

    def fields(self, levels: list[float]) -> dict[str, Any]:
        """Of one sample."""
        moved = [level * (1 + self.roll.uniform(-REST_PERCENT, REST_PERCENT) / 100) for level in levels]
        return sample_fields(moved)


def sample_fields(cores: list[float]) -> dict[str, Any]:
    """A pass over pods that use so much CPU."""
    pods = tuple(
        PodReading(
            pod=Pod(uid=f"{number:08x}", name=f"service-{number}-6c7c59f868-k72r5"),
            containers=(ContainerReading(name="main", cpu_usage_cores=used, memory_rss_bytes=GIB // 4),),
        )
        for number, used in enumerate(cores)
    )
    node = NodeReading(online_cpus="0-127", cpu_usage_cores=sum(cores) + 1, memory_total_bytes=512 * GIB,
                       memory_available_bytes=256 * GIB)  # fmt: skip
    return {"node_reading": node, "pods": pods, "window_s": 1.0}


async def _written(load: Load) -> list[int]:
    objects = CountedObjects()
    wire = Wire(MemoryBus(), objects.clock, node="bench", service="metrics")
    report = NodeMetricReport("bench", objects, objects.clock, SETTINGS, lambda: None)
    task = asyncio.create_task(report.run(await wire.newest(NodeSample), NodeSwitch()))
    levels = load.levels()
    for second in range(MINUTES * 60):
        if load.at_work and second % 60 == 0:
            levels = load.levels()
        await wire.publish(wire.stamp(NodeSample, **load.fields(levels)))
        await asyncio.sleep(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return objects.sizes


def written(*, at_work: bool) -> list[int]:
    """The sizes of all writes of the hour."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(_written(Load(at_work, random.Random(17))))


def cost(pods: int) -> tuple[float, float, int]:
    """Seconds of CPU for a sample and for a document, and how many bytes of slots are kept, with full windows."""
    policy, roll = CollectPolicy(), random.Random(17)
    windows, sample_s, write_s = UsageWindows(policy), list[float](), list[float]()
    cores = [roll.uniform(0.05, 2.0) for _ in range(pods)]
    for second in range(policy.longest_s):
        fields = sample_fields(cores if second >= policy.longest_s - policy.aggregate_s else [])
        sample = NodeSample.model_validate(ENVELOPE | {"seq": second + 1} | fields)
        before_s = time.process_time()
        windows.add(sample, float(second))
        sample_s.append(time.process_time() - before_s)
    for _ in range(ROUNDS):
        before_s = time.process_time()
        figures = node_metric_figures(windows, policy, float(policy.longest_s))
        assert figures is not None
        figures.differs(figures, SETTINGS.node_metric.change_percent)
        json.dumps(node_metric_status(figures, datetime.now(UTC)))
        write_s.append(time.process_time() - before_s)
    return statistics.median(sample_s[-policy.aggregate_s :]), statistics.median(write_s), windows.kept_slots


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    rows = []
    for what, at_work in (("at rest", False), ("at work", True)):
        progress(f"NodeMetric, {what}")
        # In a thread, for a loop runs here already.
        sizes = await asyncio.to_thread(written, at_work=at_work)
        figure = f"{len(sizes) / MINUTES:.2f} / {sum(sizes) / MINUTES / 1000:.1f} kB"
        rows.append(Row(f"NodeMetric writes a minute, {PODS} pods {what}", figure, len(sizes), "at most 1"))
    for pods in (PODS, CROWD):
        progress(f"NodeMetric, {pods} pods")
        sample_s, write_s, slots = cost(pods)
        figure = f"{sample_s * 1000:.2f} / {write_s * 1000:.1f} ms"
        rows.append(Row(f"NodeMetric, CPU of a sample / of a document, {pods} pods", figure, ROUNDS, "-"))
        kept = f"{slots * BYTES_PER_SLOT / 1024:.0f} KiB"
        rows.append(Row(f"NodeMetric, kept for its windows, {pods} pods", kept, 1, "1024 KiB"))
    return rows


def main() -> None:
    print_rows(asyncio.run(measure()))


if __name__ == "__main__":
    main()
