"""The figures of a sample as columns of a message."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from services.reporter.core.cluster.series import (
    CONTAINER,
    NODE,
    NUMA,
    POD,
    POOL,
    Value,
    chosen_labels,
    label,
    offer_series,
)
from services.reporter.core.field import Offered
from services.reporter.core.node_metric.numa_usage import numa_cpu_millis
from shared.contracts.allocation import Allocation
from shared.contracts.cluster.figures import (
    MAX_CONTAINERS,
    MAX_PARTS,
    MAX_PODS,
    QOS_LEVEL,
    FiguredContainers,
    FiguredParts,
    FiguredPods,
)
from shared.contracts.cluster.figures import (
    POOL as POOL_LABEL,
)
from shared.contracts.sample import NodeSample, PodReading

T = TypeVar("T")

MOST_AGE_S = 75.0
"""Greatest age of a published figure. A container at rest is not read for a minute, and its last figures still hold."""


def figure_fields(
    sample: NodeSample, allocation: Allocation | None, offered: Offered | None, labels: Sequence[str]
) -> dict[str, Any]:
    """Return all figures of a sample, as fields of the message; `labels` are the pods' labels that are published
    with them."""
    pods = [reading for reading in sample.pods if reading.pod.phase == "Running"]
    told = sorted(pods, key=lambda reading: reading.pod.key)[:MAX_PODS]
    node = {name: read(sample.node_reading) for name, read in NODE.items()} | offer_series(offered)
    numas, cpu_millis = sample.numas[:MAX_PARTS], numa_cpu_millis(sample)
    numa_cpu = {numa.numa: round(cpu_millis[numa.numa] / 1000, 3) for numa in numas if numa.numa in cpu_millis}
    by_numa = _columns(NUMA, numas) | _told({"numa_cpu_usage": tuple(numa_cpu.get(numa.numa) for numa in numas)})
    pools = [pool for pool in sample.pools if label(pool.pool)][:MAX_PARTS]
    return {
        "measured_at": sample.sent_at,
        "node_series": {name: value for name, value in node.items() if value is not None},
        "numas": FiguredParts(names=tuple(str(numa.numa) for numa in numas), series=by_numa),
        "pools": FiguredParts(names=tuple(pool.pool for pool in pools), series=_columns(POOL, pools)),
        **_pod_fields(_without_old(told, sample.figure_ages_s), allocation, labels),
        "pods_left_out": sample.pods_left_out + len(pods) - len(told),
    }


def _pod_fields(told: Sequence[PodReading], allocation: Allocation | None, labels: Sequence[str]) -> dict[str, Any]:
    pods = [reading.pod for reading in told]
    pools = {one.uid: one.pool for one in allocation.pods} if allocation else {}
    own: dict[str, tuple[str | None, ...]] = {
        QOS_LEVEL: tuple(pod.qos for pod in pods),
        POOL_LABEL: tuple(label(pools.get(pod.uid)) for pod in pods),
    }
    rows = [(place, one) for place, reading in enumerate(told) for one in reading.containers][:MAX_CONTAINERS]
    return {
        "pods": FiguredPods(
            uids=tuple(pod.uid for pod in pods),
            namespaces=tuple(pod.namespace for pod in pods),
            names=tuple(pod.name for pod in pods),
            labels={key: column for key, column in (chosen_labels(pods, labels) | own).items() if any(column)},
            series=_columns(POD, told),
        ),
        "containers": FiguredContainers(
            pods=tuple(place for place, _ in rows),
            names=tuple(one.name for _, one in rows),
            series=_columns(CONTAINER, [one for _, one in rows]),
        ),
    }


def _columns(series: Mapping[str, Callable[[T], Value]], rows: Sequence[T]) -> dict[str, tuple[Value, ...]]:
    return _told({name: tuple(read(row) for row in rows) for name, read in series.items()})


def _told(columns: Mapping[str, tuple[Value, ...]]) -> dict[str, tuple[Value, ...]]:
    """Return the columns without those in which nothing is known."""
    return {name: column for name, column in columns.items() if any(value is not None for value in column)}


def _without_old(readings: Sequence[PodReading], ages_s: Mapping[str, float]) -> list[PodReading]:
    """The readings without figures that are too old for at least one container."""
    old = [name for name, age_s in ages_s.items() if age_s > MOST_AGE_S]
    if not old:
        return list(readings)
    return [
        reading.model_copy(update={"containers": tuple(_without(one, old) for one in reading.containers)})
        for reading in readings
    ]


def _without(one: Any, names: Iterable[str]) -> Any:
    kept = {name: figure for name, figure in one.extra.items() if name not in names}
    gone = {name: None for name in names if name in type(one).model_fields}
    return one.model_copy(update={**gone, "extra": kept})


def shorter(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same without the second half of its pods, for a message that is too long; None: there are no pods in it."""
    pods: FiguredPods = fields["pods"]
    if not pods.uids:
        return None
    containers: FiguredContainers = fields["containers"]
    kept = len(pods.uids) // 2
    rows = sum(place < kept for place in containers.pods)
    return {
        **fields,
        "pods": FiguredPods(
            uids=pods.uids[:kept],
            namespaces=pods.namespaces[:kept],
            names=pods.names[:kept],
            labels={key: column[:kept] for key, column in pods.labels.items()},
            series={name: column[:kept] for name, column in pods.series.items()},
        ),
        # In the order of their pods.
        "containers": FiguredContainers(
            pods=containers.pods[:rows],
            names=containers.names[:rows],
            series={name: column[:rows] for name, column in containers.series.items()},
        ),
        "pods_left_out": fields["pods_left_out"] + len(pods.uids) - kept,
    }
