"""The status of a NodeMetric as a document, and what of another writer's status does not belong there any more.

Facts: docs/facts/koordinator-node-metric.md#status.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from services.reporter.core.node_metric.figures import (
    ApplicationFigures,
    NodeMetricFigures,
    NodeMetricPod,
    WindowFigures,
)
from services.reporter.core.node_metric.usage_windows import UsedResources
from shared.contracts.kube.quantities import format_millis, format_units

Document = dict[str, Any]


def node_metric_status(figures: NodeMetricFigures, wall: datetime) -> Document:
    """Return `status` of the object."""
    node: Document = {"nodeUsage": _resources(figures.node), "systemUsage": _resources(figures.system)}
    if figures.node_windows:
        node["aggregatedNodeUsages"] = _windows(figures.node_windows)
    if figures.system_windows:
        node["aggregatedSystemUsages"] = _windows(figures.system_windows)
    if figures.numas:
        node["numaUsages"] = [{"numaNodeID": numa, "nodeUsage": _resources(used)} for numa, used in figures.numas]
    time = wall.isoformat(timespec="seconds").replace("+00:00", "Z")
    status: Document = {"updateTime": time, "nodeMetric": node, "podsMetric": [_pod(pod) for pod in figures.pods]}
    if figures.applications:
        status["hostApplicationMetric"] = [_application(one) for one in figures.applications]
    if figures.prod_reclaimable is not None:
        status["prodReclaimableMetric"] = {"resource": _resources(figures.prod_reclaimable)}
    if figures.prod_peak is not None:
        status["prodPeakMetric"] = {"resource": _resources(figures.prod_peak)}
    return status


def left_over(standing: object, written: Mapping[str, Any]) -> Document:
    """Return fields of a status that another writer set and this one does not, each as null; as a merge patch.

    They would otherwise stay forever next to current figures: a predicted peak, uses of NUMA nodes.
    """
    found: Document = {}
    for key, value in standing.items() if isinstance(standing, Mapping) else ():
        if key not in written:
            found[key] = None
        elif isinstance(written[key], Mapping) and (inside := left_over(value, written[key])):
            found[key] = inside
    return found


def _windows(windows: Sequence[WindowFigures]) -> list[Document]:
    return [
        {"duration": _span(window.window_s), "usage": {name: _resources(used) for name, used in window.used.items()}}
        for window in windows
    ]


def _pod(pod: NodeMetricPod) -> Document:
    return {
        "name": pod.name,
        "namespace": pod.namespace,
        "podUsage": _resources(pod.used),
        "priority": pod.priority,
        "qos": pod.qos,
    }


def _application(one: ApplicationFigures) -> Document:
    classes = {"priority": one.priority, "qos": one.qos}
    return {"name": one.name, "usage": _resources(one.used)} | {key: word for key, word in classes.items() if word}


def _resources(used: UsedResources) -> Document:
    return {"resources": {"cpu": format_millis(used.cpu_millis), "memory": format_units(used.memory_bytes)}}


def _span(seconds: int) -> str:
    """As Go writes it: 300 is "5m0s"."""
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}h{minutes}m{left}s" if hours else f"{minutes}m{left}s" if minutes else f"{left}s"
