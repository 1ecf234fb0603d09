"""`make bench-pod-start`: how long 49 pods at once take to be Ready on a busy node, without and with Sublet.

By turns on one machine, so that what else it does falls on both alike. Takes some 10 minutes, and root.
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

TENANTS, BATCH = 25, 22
"""Beside a busy one of each."""
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
        return (f"{self.way:<10}  all {self.all_s:6.1f} s   {_told('tenants', self.tenants_s, TENANTS)}"
                f"   {_told('reclaimed', self.batch_s, BATCH)}")  # fmt: skip


def _told(what: str, ready_s: list[float], of: int) -> str:
    last = f"median {statistics.median(ready_s):4.0f} s, last {ready_s[-1]:4.0f} s" if ready_s else "none"
    return f"{what} {len(ready_s)}/{of}: {last}"


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


def _round(cluster: Cluster, way: str, processes: int, limit_s: float) -> Round:
    crowd = Crowd(cluster, TENANTS, BATCH)
    with _installed(cluster, WAYS[way]), crowd.busy(processes):
        all_s = crowd.come_and_be_ready(limit_s)
        of = {kind: crowd.ready_s(kind) for kind in ("tenant", "batch")}
    return Round(way, all_s, of["tenant"], of["batch"])


def main() -> int:
    """Measure and print."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--ways", nargs="+", choices=WAYS, default=["without", "with"] * 3)
    words.add_argument("--processes", type=int, default=2, help="busy processes of the machine, at nice 19")
    words.add_argument("--limit", type=float, default=300.0, help="seconds after which a round is given up")
    chosen = words.parse_args()
    CLUSTER.require_tools()
    rounds = []
    with CLUSTER.cache_held() as cache:
        image = build_product(cache, print)
        with running(cache, print) as cluster:
            cluster.node.load(image.archive)
            for way in chosen.ways:
                rounds.append(_round(cluster, way, chosen.processes, chosen.limit))
                print(time.strftime("%H:%M:%S"), rounds[-1], flush=True)
    medians = {way: statistics.median(one.all_s for one in rounds if one.way == way) for way in chosen.ways}
    for way, median_s in medians.items():
        ratio = f"{median_s / medians['without']:.2f} times the time without Sublet" if "without" in medians else ""
        print(f"{way:<10}  median {median_s:6.1f} s  {ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
