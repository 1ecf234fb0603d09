"""The figures of a NodeMetric at one moment, and whether they differ enough from others to be written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from services.reporter.core.node_metric.collect_policy import CollectPolicy
from services.reporter.core.node_metric.usage_windows import UsageWindow, UsageWindows, UsedResources
from shared.contracts.pod import Pod
from shared.core.pods.koord_qos import KoordQos, PriorityClass, koord_qos_here, priority_class

LEAST_CPU_MILLIS, LEAST_MEMORY_BYTES = 10, 16 << 20
"""A smaller change is ignored, whatever share of the figure it is; otherwise idle pods would be written all the
time."""


@dataclass(frozen=True, slots=True)
class NodeMetricPod:
    """Use of one pod, and its class here."""

    namespace: str
    name: str
    qos: KoordQos
    priority: PriorityClass
    used: UsedResources


@dataclass(frozen=True, slots=True)
class ApplicationFigures:
    """Use of one application outside of pods, and its classes."""

    name: str
    qos: KoordQos | None
    priority: PriorityClass | None
    used: UsedResources


@dataclass(frozen=True, slots=True)
class WindowFigures:
    """Mean and percentiles of one window, by Koordinator's names."""

    window_s: int
    used: Mapping[str, UsedResources]


@dataclass(frozen=True, slots=True)
class NodeMetricFigures:
    """All figures of a NodeMetric."""

    node: UsedResources
    system: UsedResources
    node_windows: tuple[WindowFigures, ...]
    system_windows: tuple[WindowFigures, ...]
    pods: tuple[NodeMetricPod, ...]
    applications: tuple[ApplicationFigures, ...] = ()
    numas: tuple[tuple[int, UsedResources], ...] = ()
    """By NUMA node, ascending; one without a figure is left out."""
    prod_reclaimable: UsedResources | None = None
    """What prod pods requested and, according to their past, do not use; None if unknown."""
    prod_peak: UsedResources | None = None
    """Peak of prod pods and the system according to their past."""

    def differs(self, other: "NodeMetricFigures", percent: int) -> bool:
        """Whether pods came, went or changed class, or an amount moved by more than this percent of what it was."""
        before, now = dict(other.amounts()), dict(self.amounts())
        return before.keys() != now.keys() or any(_moved(before[key], now[key], percent) for key in now)

    def amounts(self) -> Iterator[tuple[tuple[object, ...], UsedResources]]:
        """Return every amount with the names under which it appears."""
        yield ("node",), self.node
        yield ("system",), self.system
        if self.prod_reclaimable is not None:
            yield ("prod_reclaimable",), self.prod_reclaimable
        if self.prod_peak is not None:
            yield ("prod_peak",), self.prod_peak
        for whose, windows in (("node", self.node_windows), ("system", self.system_windows)):
            for window in windows:
                yield from (((whose, window.window_s, name), used) for name, used in window.used.items())
        yield from ((("numa", numa), used) for numa, used in self.numas)
        for pod in self.pods:
            yield ("pod", pod.namespace, pod.name, pod.qos, pod.priority), pod.used
        for one in self.applications:
            yield ("application", one.name, one.qos, one.priority), one.used


def node_metric_figures(windows: UsageWindows, policy: CollectPolicy, now_s: float) -> NodeMetricFigures | None:
    """Return the current figures; None if the node's own use is unknown. A missing figure is left out: it is not 0."""
    node, system = (window.mean(policy.aggregate_s, now_s) for window in (windows.node, windows.system))
    if node is None or system is None:
        return None
    pods = [_pod(pod, used) for pod, window in windows.pods.values()
            if (used := window.mean(policy.aggregate_s, now_s)) is not None]  # fmt: skip
    return NodeMetricFigures(
        node,
        system,
        _windows(windows.node, policy, now_s),
        _windows(windows.system, policy, now_s),
        tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name))),
        tuple(_applications(windows, policy, now_s)),
        tuple(
            (numa, used)
            for numa, window in sorted(windows.numas.items())
            if (used := window.mean(policy.aggregate_s, now_s)) is not None
        ),
    )


def _applications(windows: UsageWindows, policy: CollectPolicy, now_s: float) -> Iterator[ApplicationFigures]:
    for name, (one, window) in sorted(windows.applications.items()):
        if (used := window.mean(policy.aggregate_s, now_s)) is not None:
            yield ApplicationFigures(name, one.qos, one.priority, used)


def _windows(window: UsageWindow, policy: CollectPolicy, now_s: float) -> tuple[WindowFigures, ...]:
    found = (WindowFigures(window_s, window.percentiles(window_s, now_s)) for window_s in policy.windows_s)
    return tuple(figures for figures in found if figures.used)


def _pod(pod: Pod, used: UsedResources) -> NodeMetricPod:
    qos = koord_qos_here(pod.labels, pod.qos)
    default: PriorityClass = "koord-batch" if qos == "BE" else "koord-prod"
    return NodeMetricPod(pod.namespace, pod.name, qos, priority_class(pod.labels, pod.priority) or default, used)


def _moved(before: UsedResources, now: UsedResources, percent: int) -> bool:
    cpu_millis = max(LEAST_CPU_MILLIS, before.cpu_millis * percent // 100)
    memory_bytes = max(LEAST_MEMORY_BYTES, before.memory_bytes * percent // 100)
    return (
        abs(now.cpu_millis - before.cpu_millis) > cpu_millis
        or abs(now.memory_bytes - before.memory_bytes) > memory_bytes
    )
