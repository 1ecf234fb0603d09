"""Memory of the metrics API with the series of 10 000 pods over ten minutes, and the time of its answers.

    python -m bench metrics_api

A process of its own holds the store, for its memory is what is measured. Every node says what the reporter of a node
says, through the same door as messages of the bus, with the decoding. Answers are timed up to their last byte of JSON.
"""

import asyncio
import gc
import json
import sys
import time
from asyncio.subprocess import PIPE
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from bench.rigs.report import Row, progress
from services.central.core.custom_metrics.cluster_objects import MeteredSeen
from services.central.core.custom_metrics.figures import figure_samples
from services.central.core.custom_metrics.series import MeteredObject
from services.central.core.custom_metrics.store import MetricStore, StoreBounds
from services.central.custom_metrics.answers import MetricsAnswers, wall_ms
from services.central.ports.https import HttpRequest
from services.central.settings import MetricsApiSettings
from shared.adapters.clock import SystemClock
from shared.contracts.cluster.figures import FIGURES_PERIOD_S, FiguredContainers, FiguredPods, PodFigures
from sublet.demo.load import percentile

NODES, PODS_OF_NODE, NAMESPACES, KEEP_S = 100, 100, 50, 600.0
ROUNDS = 400
TARGET_MEMORY, TARGET_TIME = "300 MB", "p99 50 ms"
SERIES = (
    "pod_cpu_usage", "pod_cpu_usage_ratio", "pod_cpu_wanted", "pod_cpu_load_1min", "pod_cpu_throttled_ratio",
    "pod_cpu_pressure_percent", "pod_memory_pressure_percent", "pod_memory_usage", "pod_memory_usage_ratio",
    "pod_memory_rss",
)  # fmt: skip
CONTAINER_SERIES = (
    "container_cpu_usage", "container_cpu_wanted", "container_cpu_throttled_ratio", "container_memory_usage",
    "container_memory_rss",
)  # fmt: skip
QUERIES = {
    "the pods of a workload, of 200": ("pods/*/pod_cpu_usage", "app=web-7"),
    "their mean of ten minutes": ("pods/*/pod_cpu_usage_agg_avg", "app=web-7"),
    "all 200 pods of a namespace": ("pods/*/pod_cpu_usage", ""),
}


class StillClock(SystemClock):
    """The wall clock stands: building ten minutes of figures takes some, and none of them gets stale by it."""

    def __init__(self) -> None:
        super().__init__()
        self._wall = super().wall()

    def wall(self) -> datetime:
        """Always the same."""
        return self._wall


class Scene:
    """The pods of a large cluster, known to the store that is measured."""

    def __init__(self) -> None:
        self.clock = StillClock()
        self.seen: dict[MeteredObject, MeteredSeen] = {}
        for node in range(NODES):
            for number in range(PODS_OF_NODE):
                about = MeteredObject("pods", f"team-{number % NAMESPACES}", f"web-{node}-{number}-7c9f8d6b5-x2x4v")
                self.seen[about] = MeteredSeen(about, f"node-{node}", {"app": f"web-{node % 10}"})
            own = MeteredObject("nodes", None, f"node-{node}")
            self.seen[own] = MeteredSeen(own, f"node-{node}", {})
        settings = MetricsApiSettings(keep_s=KEEP_S)
        bounds = StoreBounds(settings.max_series, settings.max_samples, settings.max_object_series)
        self.store = MetricStore(KEEP_S, self.labels, bounds)
        self.proxy = None
        self.answers = MetricsAnswers(self.store, self, self.clock)

    def labels(self, about: MeteredObject) -> Any:
        found = self.seen.get(about)
        return None if found is None else found.labels

    def message(self, node: int, turn: int) -> bytes:
        """What a node says in one of its turns."""
        pods = [about for about, seen in self.seen.items() if seen.node == f"node-{node}" and about.kind == "pods"]
        now = self.clock.wall()
        own = FiguredPods(
            uids=tuple(f"{place:08x}" for place in range(len(pods))),
            namespaces=tuple(str(pod.namespace) for pod in pods), names=tuple(str(pod.name) for pod in pods),
            labels={"qos_level": ("shared_cores",) * len(pods), "app": ("web",) * len(pods)},
            series={name: tuple(0.001 * (turn + place) for place in range(len(pods))) for name in SERIES},
        )  # fmt: skip
        containers = FiguredContainers(
            pods=tuple(range(len(pods))), names=("main",) * len(pods),
            series={name: tuple(0.001 * (turn + place) for place in range(len(pods))) for name in CONTAINER_SERIES},
        )  # fmt: skip
        return PodFigures(
            node=f"node-{node}", boot_id="0123456789abcdef", seq=turn, sent_at=now, period_s=FIGURES_PERIOD_S,
            measured_at=now - timedelta(seconds=1), node_series={"node_cpu_usage": 3}, pods=own, containers=containers,
        ).encode()  # fmt: skip


def resident_mib() -> float:
    """What this process holds."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def hold() -> None:
    """Be the process that is measured: ten minutes of figures, then questions; says what it found as JSON."""
    scene = Scene()
    before_mib, turns = resident_mib(), round(KEEP_S / FIGURES_PERIOD_S)
    end_ms, taken_s = wall_ms(scene.clock), list[float]()
    for node in range(NODES):
        texts = scene.message(node, node)
        for turn in range(turns):
            at_ms = end_ms - round((turns - 1 - turn) * FIGURES_PERIOD_S * 1000)
            began_s = time.process_time()
            figures = PodFigures.decode(texts)
            scene.store.insert(figure_samples(figures, at_ms, scene.seen.get), end_ms)
            taken_s.append(time.process_time() - began_s)
    gc.collect()
    held_mib, spent = resident_mib(), {}
    for what, (path, selector) in QUERIES.items():
        full = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/team-7/{path}"
        request, times = HttpRequest(full, query={"labelSelector": selector}), []
        for _ in range(ROUNDS):
            began_s = time.perf_counter()
            reply = scene.answers.answer(request)
            json.dumps(reply.body, separators=(",", ":")).encode()
            times.append(time.perf_counter() - began_s)
        spent[what] = (times, reply.items)
    print(json.dumps({"before_mib": before_mib, "held_mib": held_mib, "series": scene.store.series,
                      "samples": scene.store.samples, "taken_s": taken_s, "spent": spent}))  # fmt: skip


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    progress(f"metrics API, {NODES * PODS_OF_NODE} pods")
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.cluster.metrics_api", "hold", stdout=PIPE)
    said, _ = await child.communicate()
    found = json.loads(said)
    what = f"{NODES * PODS_OF_NODE} pods, {found['series']} series, {found['samples']} samples of ten minutes"
    taken_ms = (percentile(found["taken_s"], 50) or 0) * 1000
    rows = [
        Row(f"metrics API, memory of the process: {what}", f"{found['held_mib']:.0f} MiB", 1, TARGET_MEMORY),
        Row(f"metrics API, CPU of a node's message of {PODS_OF_NODE} pods", f"{taken_ms:.1f} ms",
            len(found["taken_s"]), "-"),
    ]  # fmt: skip
    for query, (times, items) in found["spent"].items():
        median, p99 = ((percentile(times, p) or 0) * 1000 for p in (50, 99))
        figure = f"{median:.2f} / {p99:.2f} ms"
        rows.append(Row(f"metrics API, {query} ({items} items), p50 / p99", figure, ROUNDS, TARGET_TIME))
    return rows


if __name__ == "__main__":
    hold()
