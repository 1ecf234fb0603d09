"""Cost of metrics: microseconds a pass and a probe, over a generated tree of many pods.

    python bench/metrics_pass.py [pods]

The tree holds plain files in memory; real kernel files cost about 2 us more each to open and print.
"""

import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/trees"))

from kernel_trees import KernelTree

from services.metrics.collector import Collector, find_sources
from services.metrics.core.summary import Memory, summarise
from services.metrics.host import Host
from services.metrics.targets import LocalTargets
from services.metrics.tripwire import HostTripwire
from shared.adapters.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import NodeSample
from shared.core.layout import container_group

ROUNDS = 200
MEMORY_FOLDER = Path("/dev/shm")
PERIOD_S, PROBE_S = 2.0, 0.1
THREADS = "RSSSS"  # five a container, one of them running


def plant(tree: KernelTree, count: int) -> list[Pod]:
    """Half tenants, half batch, one container each."""
    tree.machine(cpus=48, numas=2)
    tree.node(cpus=48)
    pods = []
    for number in range(count):
        qos = ("shared_cores", "reclaimed_cores")[number % 2]
        pod = Pod(uid=f"{number:032x}", name=f"pod-{number}", qos=qos, containers=(Container(name="main"),))
        tree.group(container_group(pod, "main"), usage_ns=number, tids=tree.tasks(THREADS))
        pods.append(pod)
    return pods


def microseconds(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median and 99th percentile of the CPU time of one call."""
    spent = []
    for _ in range(rounds):
        before = time.process_time_ns()
        work()
        spent.append((time.process_time_ns() - before) / 1000)
    return statistics.median(spent), statistics.quantiles(spent, n=100)[98]


def measure(version: int, count: int) -> tuple[tuple[float, float], tuple[float, float], int]:
    """Pass, probe, and the bytes of a sample."""
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None) as folder:
        tree = KernelTree(Path(folder), version)
        pods = plant(tree, count)
        cgroups = Cgroups(tree.root)
        collector = Collector(Host(tree.root, cgroups), find_sources(), LocalTargets(tree.root), time.monotonic)
        tripwire = HostTripwire(tree.root, cgroups)
        memory, size = Memory(), 0

        def whole_pass() -> None:
            nonlocal memory, size
            readings = collector.collect(pods).readings
            fields, memory = summarise(memory, readings, collector.offered, pods, time.monotonic())
            sample = NodeSample(node="bench", boot_id="0" * 8, seq=1, sent_at=datetime.now(UTC), **fields)
            size = len(sample.encode())

        return microseconds(whole_pass, ROUNDS), microseconds(tripwire.look, 10 * ROUNDS), size


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    machine = (
        f"{os.cpu_count()} CPUs {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}"
    )
    print(f"metrics, {count} pods of {len(THREADS)} threads, N = {ROUNDS}, {datetime.now(UTC):%Y-%m-%d}, {machine}\n")
    print("| cgroup | pass us (p99) | probe us (p99) | sample bytes | of a core at rest |")
    print("|---|---|---|---|---|")
    for version in (1, 2):
        (one_pass, pass_p99), (probe, probe_p99), size = measure(version, count)
        share = one_pass / 1e6 / PERIOD_S + probe / 1e6 / PROBE_S
        print(
            f"| v{version} | {one_pass:.0f} ({pass_p99:.0f}) | {probe:.0f} ({probe_p99:.0f}) | {size} | {share:.2%} |"
        )


if __name__ == "__main__":
    main()
