"""A node's figures as samples: what the metrics API takes of them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from services.central.core.custom_metrics.cluster_objects import MeteredSeen
from services.central.core.custom_metrics.exposition import read_samples
from services.central.core.custom_metrics.series import MeteredObject, MetricSample, SeriesKey
from shared.contracts.cluster.figures import FIGURES_PERIOD_S, PodFigures

STALE_S = 2 * FIGURES_PERIOD_S + 10
"""Age from which a series answers nothing, because the autoscaler must not act on old values."""
FUTURE_MS = 5000
"""So far ahead of ours a pod's clock may be; later ones would be the newest for ever."""
ALIASES: Mapping[str, str] = {
    "cpu_usage": "pod_cpu_usage",
    "memory_working_set_bytes": "pod_memory_usage",
    "memory_rss": "pod_memory_rss",
}
"""Names that the default rules of prometheus-adapter give to the same figures of pods, and ours."""


def page_samples(
    text: str, pod: MeteredObject, now_ms: int, expire_s: float
) -> tuple[list[MetricSample], Counter[str]]:
    """Return the samples of a pod's page: about the pod itself, and external metrics of its namespace, labelled with
    its name.

    Samples about other objects are dropped, because users of a namespace may only scale by their own values.
    """
    read, unread = read_samples(text, now_ms, expire_s, untimed_ms=now_ms)
    taken, dropped = list[MetricSample](), Counter[str](unread)
    external = MeteredObject(None, pod.namespace, None)
    for key, at_ms, value in read:
        about = external if key.about.kind is None else key.about._replace(namespace=pod.namespace)
        labels = key.labels
        if about == external:
            labels = tuple(sorted({**dict(labels), "pod": str(pod.name)}.items()))
        if about not in (pod, external) or key.about.namespace not in (None, pod.namespace):
            dropped["foreign"] += 1
        elif at_ms > now_ms + FUTURE_MS:
            dropped["of_later"] += 1
        else:
            taken.append(MetricSample(SeriesKey(key.metric, about, labels), at_ms, value))
    return taken, dropped


def figure_samples(
    figures: PodFigures, taken_ms: int, seen: Callable[[MeteredObject], MeteredSeen | None]
) -> Iterator[MetricSample]:
    """The samples of a message that was taken at this time of ours, but for pods that are not on the node who speaks.

    A node's clock may be wrong, its age of a sample is not: that is of one clock. So it is counted back from ours.
    """
    at_ms = taken_ms - max(0, round((figures.sent_at - figures.measured_at).total_seconds() * 1000))
    for row in figures.rows():
        about = MeteredObject(row.resource, row.namespace or None, row.name)
        known = seen(about)
        # An unknown one is passed on, and counted where samples are stored.
        if known is not None and known.node != figures.node:
            continue
        labels = tuple(sorted(row.labels.items()))
        for metric, value in row.figures.items():
            yield MetricSample(SeriesKey(metric, about, labels), at_ms, float(value))
