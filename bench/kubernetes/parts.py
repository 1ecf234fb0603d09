"""The parts of `make bench-kubernetes`: which crowd, which agent, which targets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kube_rig.cluster import Cluster
from kube_rig.product import Product

from bench.kubernetes.agent import AgentPod, restarts
from bench.kubernetes.cost import Plan, Targets, measure_cost
from bench.kubernetes.crowds import at_rest, at_work, crowded, largest
from bench.kubernetes.spikes import QUICK_RETURN, measure_spikes
from bench.kubernetes.starts import measure_starts
from bench.rigs.report import Row, stage

NO_ADMISSION: dict[str, Any] = {"admission": {"enabled": False}}
"""The crowds' batch pods say no amounts."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What the parts measure on."""

    cluster: Cluster
    product: Product
    plan: Plan
    pods: int | None

    def count(self, usual: int) -> int:
        """How many pods a part puts on the node."""
        return self.pods or usual


def rest(bench: Bench) -> list[Row]:
    """50 pods that sleep."""
    count = bench.count(50)
    return _cost(bench, at_rest(bench.cluster, count), f"{count} pods at rest", Targets("1 %", "80 MB"))


def work(bench: Bench) -> list[Row]:
    """110 pods that all work."""
    count = bench.count(110)
    return _cost(bench, at_work(bench.cluster, count), f"{count} pods at work", Targets("3 %", "110 MB"))


def large(bench: Bench) -> list[Row]:
    """250 pods as large as the API server takes them."""
    count = bench.count(250)
    return _cost(bench, largest(bench.cluster, count), f"{count} of the largest pods", Targets("", "bounded"))


def reaction(bench: Bench) -> list[Row]:
    """A tenant that wakes, again and again."""
    with _installed(bench.product, QUICK_RETURN):
        return measure_spikes(bench.cluster, bench.plan.spikes)


def starts(bench: Bench) -> list[Row]:
    """Many pods at once, 50 and 110; each round has an agent of its own, or none."""
    sizes = [bench.pods] if bench.pods else [50, 110]
    return [row for size in sizes for row in measure_starts(bench.cluster, size, bench.plan.runs)]


def _cost(bench: Bench, documents: list[dict[str, Any]], what: str, targets: Targets) -> list[Row]:
    with _installed(bench.product), crowded(bench.cluster, documents, ready="volumes" not in documents[0]["spec"]):
        rows = measure_cost(AgentPod.found(bench.cluster, bench.product), what, bench.plan, targets)
        return [*rows, Row(f"restarts in the agent's pod, {what}", str(restarts(bench.product)), 1, "0")]


@contextmanager
def _installed(product: Product, values: dict[str, Any] | None = None) -> Iterator[None]:
    """As the chart installs it; each part has an agent of its own, for memory does not shrink."""
    stage("Sublet comes")
    product.install({**NO_ADMISSION, **(values or {})})
    try:
        yield
    finally:
        product.uninstall()
        product.leave()


PARTS: dict[str, Callable[[Bench], list[Row]]] = {
    "rest": rest,
    "reaction": reaction,
    "starts": starts,
    "work": work,
    "large": large,
}
