"""`make bench-pod-start`: how long many pods at once take to be Ready on a busy node, without and with Sublet.

By turns on one machine, so that what else it does falls on both alike. Takes some 10 minutes with 50 pods, and root.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from crowd import Crowd
from kube_rig.cluster import CLUSTER, Cluster, running
from kube_rig.images import build_product
from kube_rig.product import Product

from bench.rigs.disturbance import Watch
from bench.rigs.report import Row, observed, stage

PODS, PROCESSES, LIMIT_S, ROUNDS = 50, 2, 300.0, 3
BUSY_PODS = 2
"""A tenant and a batch pod that are busy; they are among the pods."""
BEHIND_ALL = {"settings": {"qrm": {"starts": {"pods_per_cpu": 0}}}}
"""Without the rule that is measured."""
WAYS: dict[str, dict[str, Any] | None] = {"without": None, "with": {}, "behind-all": BEHIND_ALL}


@dataclass(frozen=True, slots=True)
class Round:
    """One crowd: seconds until all were ready, and until each was, by kind."""

    way: str
    all_s: float
    tenants_s: list[float]
    batch_s: list[float]

    def __str__(self) -> str:
        return (f"{self.way:<10}  all {self.all_s:6.1f} s   {_told('tenants', self.tenants_s)}"
                f"   {_told('reclaimed', self.batch_s)}")  # fmt: skip


def _told(what: str, ready_s: list[float]) -> str:
    last = f"median {statistics.median(ready_s):4.0f} s, last {ready_s[-1]:4.0f} s" if ready_s else "none"
    return f"{what} {len(ready_s)} ready: {last}"


@contextmanager
def _installed(cluster: Cluster, values: dict[str, Any] | None) -> Iterator[None]:
    if values is None:
        yield
        return
    product = Product(cluster)
    product.install({**values, "admission": {"enabled": False}})  # these batch pods say no amounts
    try:
        yield
    finally:
        product.uninstall()
        product.leave()


def one_round(
    cluster: Cluster, way: str, pods: int = PODS, processes: int = PROCESSES, limit_s: float = LIMIT_S
) -> Round:
    """Let so many pods come, half of them tenants, beside busy processes of the machine at nice 19."""
    batch = (pods - BUSY_PODS) // 2
    crowd = Crowd(cluster, pods - BUSY_PODS - batch, batch)
    with _installed(cluster, WAYS[way]), crowd.busy(processes):
        all_s = crowd.come_and_be_ready(limit_s)
        of = {kind: crowd.ready_s(kind) for kind in ("tenant", "batch")}
    return Round(way, all_s, of["tenant"], of["batch"])


def measure_starts(cluster: Cluster, pods: int, rounds: int) -> list[Row]:
    """The row of the starts with Sublet, as a ratio of those without; by turns, so that nothing need be repeated."""
    found: dict[str, list[Round]] = {"without": [], "with": []}
    watch = Watch()
    for number in range(rounds):
        for way, ended in found.items():
            stage(f"{pods} pods at once, {way} Sublet, round {number + 1} of {rounds}")
            ended.append(one_round(cluster, way, pods))
    alone_s, beside_s = (statistics.median(one.all_s for one in ended) for ended in found.values())
    figure = f"{beside_s / alone_s:.2f} times, {beside_s:.0f} / {alone_s:.0f} s"
    row = Row(f"{pods} pods at once until all are Ready, with / without Sublet", figure, rounds, "1.1 times")
    return observed([row], watch.disturbance(), 1)


def main() -> int:
    """Measure and print."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--ways", nargs="+", choices=WAYS, default=["without", "with"] * ROUNDS)
    words.add_argument("--pods", type=int, default=PODS)
    words.add_argument("--processes", type=int, default=PROCESSES, help="busy processes of the machine, at nice 19")
    words.add_argument("--limit", type=float, default=LIMIT_S, help="seconds after which a round is given up")
    chosen = words.parse_args()
    CLUSTER.require_tools()
    rounds = []
    with CLUSTER.cache_held() as cache:
        image = build_product(cache, print)
        with running(cache, print) as cluster:
            cluster.node.load(image.archive)
            for way in chosen.ways:
                rounds.append(one_round(cluster, way, chosen.pods, chosen.processes, chosen.limit))
                print(time.strftime("%H:%M:%S"), rounds[-1], flush=True)
    medians = {way: statistics.median(one.all_s for one in rounds if one.way == way) for way in chosen.ways}
    for way, median_s in medians.items():
        ratio = f"{median_s / medians['without']:.2f} times the time without Sublet" if "without" in medians else ""
        print(f"{way:<10}  median {median_s:6.1f} s  {ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
