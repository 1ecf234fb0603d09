"""Expose the last sample as Prometheus gauges, built when they are scraped.

A missing figure has no series. Pods are the only labels whose number the machine does not bound: at most `MOST_PODS`
have their own series, by namespace and name, and a gauge counts those that were left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import GaugeMetricFamily

from shared.contracts.sample import ContainerReading, NodeSample, PodReading, Pressure
from shared.core.cpus.cpuset import CpuSet

MOST_PODS = 256
"""More than a kubelet runs on a node by default (110)."""
_SUMS = (
    "cpu_usage_cores",
    "load1",
    "runnable_tasks",
    "sched_wait_tasks",
    "memory_usage_bytes",
    "memory_working_set_bytes",
    "disk_read_bytes_per_s",
    "disk_write_bytes_per_s",
)
"""Figures that may be added up over a pod's containers."""
_NOT_A_NAME = re.compile(r"[^a-z0-9_]")


class Exposition:
    """Holds the last sample for scrapes; nothing is copied meanwhile."""

    def __init__(self, monotonic: Callable[[], float], registry: CollectorRegistry = REGISTRY) -> None:
        self._monotonic, self._registry = monotonic, registry
        self._sample: NodeSample | None = None
        self._shown_at_s = 0.0
        self._missing, self._failing = 0, 0
        registry.register(self)

    def show(self, sample: NodeSample, *, missing: int, failing: int) -> None:
        """Show this sample from now on; how many figures were rejected, and how many sources failed."""
        self._sample, self._shown_at_s = sample, self._monotonic()
        self._missing, self._failing = missing, failing

    def close(self) -> None:
        """Take the gauges away."""
        self._registry.unregister(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges now."""
        sample = self._sample
        if sample is None:
            return
        yield _gauge("sublet_sample_age_seconds", self._monotonic() - self._shown_at_s)
        yield _gauge("sublet_sample_figures_missing", self._missing)
        yield _gauge("sublet_sample_sources_failing", self._failing)
        ages = (((figure,), age_s) for figure, age_s in sample.figure_ages_s.items())
        yield from _families("sublet_figure_age_seconds", ("figure",), ages)
        yield from _levels("sublet_node", (), [((), sample.node_reading)])
        yield _gauge("sublet_node_cpus", len(CpuSet.parse(sample.node_reading.online_cpus)))
        if sample.node_reading.cpus is not None:
            busy = sample.node_reading.cpus.by_cpu()
            shares = (((str(cpu),), percent / 100) for cpu, percent in busy.items())
            yield from _families("sublet_cpu_usage_ratio", ("cpu",), shares)
        yield from _levels("sublet_numa", ("numa",), [((str(numa.numa),), numa) for numa in sample.numas])
        yield from _levels("sublet_pool", ("pool",), [((pool.pool,), pool) for pool in sample.pools])
        yield from _pods(sorted(sample.pods, key=lambda reading: reading.pod.key))


Labelled = tuple[tuple[str, ...], float]


def _gauge(name: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, f"{name} of the last sample.", value=value)


def _families(name: str, labels: tuple[str, ...], values: Iterable[Labelled]) -> Iterator[GaugeMetricFamily]:
    family = GaugeMetricFamily(name, f"{name} of the last sample.", labels=labels)
    for own, value in values:
        family.add_metric(own, value)
    if family.samples:
        yield family


def _levels(prefix: str, labels: tuple[str, ...], readings: list[tuple[tuple[str, ...], object]]
            ) -> Iterator[GaugeMetricFamily]:  # fmt: skip
    """All numbers of some readings of one kind, and their pressures. Of "nic_up.eth0" the card is a label."""
    numbers: dict[tuple[str, bool], list[Labelled]] = {}
    stalls: list[Labelled] = []
    for own, reading in readings:
        for name, value in _numbers(reading):
            figure, _, of = name.partition(".")
            numbers.setdefault((figure, bool(of)), []).append(((*own, of) if of else own, value))
        stalls += [((*own, *where), percent) for where, percent in _stalls(reading)]
    for (figure, named), values in numbers.items():
        shown = (*labels, "name") if named else labels
        yield from _families(f"{prefix}_{_NOT_A_NAME.sub('_', figure)}", shown, values)
    yield from _families(f"{prefix}_pressure_percent", (*labels, "resource", "stalled", "window"), stalls)


def _numbers(reading: object) -> Iterator[tuple[str, float]]:
    for name, value in vars(reading).items():
        if name == "extra":
            yield from value.items()
        elif isinstance(value, int | float) and name != "numa":
            yield name, value


def _stalls(reading: object) -> Iterator[Labelled]:
    for name, value in vars(reading).items():
        if isinstance(value, Pressure):
            resource = name.removesuffix("_pressure")
            yield (resource, "some", "10s"), value.some_avg10_percent
            yield (resource, "some", "60s"), value.some_avg60_percent
            yield (resource, "full", "10s"), value.full_avg10_percent


def _pods(readings: list[PodReading]) -> Iterator[GaugeMetricFamily]:
    """Sum up the containers of each pod; a pod with an unknown container has no sum."""
    shown = readings[:MOST_PODS]
    for name in _SUMS:
        sums = ((reading, _sum(reading.containers, name)) for reading in shown)
        values = (((reading.pod.namespace, reading.pod.name), total) for reading, total in sums if total is not None)
        yield from _families(f"sublet_pod_{name}", ("namespace", "pod"), values)
    yield _gauge("sublet_pods", len(readings))
    yield _gauge("sublet_pods_left_out", len(readings) - len(shown))


def _sum(containers: tuple[ContainerReading, ...], name: str) -> float | None:
    known: list[float] = [figure for one in containers if (figure := getattr(one, name)) is not None]
    return sum(known) if known and len(known) == len(containers) else None
