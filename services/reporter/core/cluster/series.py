"""The series of one node, its pools, pods and containers: which figure of a sample each one is.

Katalyst's names have the same meaning here (docs/facts/katalyst-metrics.md#series-of-the-agent); the others are our
own. CPU is in cores, memory in bytes, shares in percent or from 0 to 1 as their names say. Unmeasured values are None.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from services.reporter.core.field import Offered
from shared.contracts.cluster.figures import LABEL_CHARACTERS, LABEL_PATTERN
from shared.contracts.pod import Pod
from shared.contracts.sample import (
    ContainerReading,
    GroupReading,
    NodeReading,
    NumaReading,
    PodReading,
    PoolReading,
    Pressure,
)
from shared.core.cpus.cpuset import CpuSet

_LABEL, _LONGEST = re.compile(LABEL_PATTERN), LABEL_CHARACTERS
Value: TypeAlias = float | int | None
CPU_DIGITS = 3
SHARE_DIGITS = 4


def _cores(value: float | None) -> Value:
    return None if value is None else round(value, CPU_DIGITS)


def _ratio(part: float | None, whole: float | None) -> Value:
    return None if part is None or not whole else round(part / whole, SHARE_DIGITS)


def _waiting(pressure: Pressure | None) -> Value:
    return None if pressure is None else round(pressure.some_avg10_percent, 2)


def _wanted(*parts: float | None) -> Value:
    """Return the sum; the first part is use, without which nothing is known, and waiting or throttled demand counts
    like use."""
    use, *rest = parts
    return None if use is None else round(use + sum(part or 0.0 for part in rest), CPU_DIGITS)


def memory_used(one: GroupReading) -> int | None:
    """Return the working set if known, otherwise the use."""
    return one.memory_usage_bytes if one.memory_working_set_bytes is None else one.memory_working_set_bytes


NODE: Mapping[str, Callable[[NodeReading], Value]] = {
    "node_cpu_total": lambda one: len(CpuSet.parse(one.online_cpus)),
    "node_cpu_usage": lambda one: _cores(one.cpu_usage_cores),
    "node_cpu_usage_ratio": lambda one: _ratio(one.cpu_usage_cores, len(CpuSet.parse(one.online_cpus))),
    "node_cpu_load_system_1min": lambda one: _cores(one.load1),
    "node_cpu_wanted": lambda one: _wanted(one.cpu_usage_cores, one.sched_wait_tasks),
    "node_cpu_steal": lambda one: _cores(one.cpu_steal_cores),
    "node_cpu_pressure_percent": lambda one: _waiting(one.cpu_pressure),
    "node_memory_pressure_percent": lambda one: _waiting(one.memory_pressure),
    "node_io_pressure_percent": lambda one: _waiting(one.io_pressure),
    "node_system_memory_total": lambda one: one.memory_total_bytes,
    "node_system_memory_free": lambda one: one.memory_free_bytes,
    "node_system_memory_available": lambda one: one.memory_available_bytes,
}
NUMA: Mapping[str, Callable[[NumaReading], Value]] = {
    "numa_memory_total": lambda one: one.memory_total_bytes,
    "numa_memory_free": lambda one: one.memory_free_bytes,
    "numa_memory_usage": lambda one: one.memory_used_bytes,
}
"""In addition there is `numa_cpu_usage`, which is not a figure of one NUMA node alone."""
POOL: Mapping[str, Callable[[PoolReading], Value]] = {
    "node_advisor_pool_load_1min": lambda one: _cores(one.load1),
    "pool_cpu_usage": lambda one: _cores(one.cpu_usage_cores),
    "pool_cpu_wanted": lambda one: _wanted(one.cpu_usage_cores, one.sched_wait_tasks),
    "pool_cpu_pressure_percent": lambda one: _waiting(one.cpu_pressure),
    "pool_memory_usage": memory_used,
}
CONTAINER: Mapping[str, Callable[[ContainerReading], Value]] = {
    "container_cpu_usage": lambda one: _cores(one.cpu_usage_cores),
    "container_cpu_wanted": lambda one: _wanted(one.cpu_usage_cores, one.sched_wait_tasks, one.throttled_cores),
    "container_cpu_throttled_ratio": lambda one: _ratio(one.throttled_ratio, 1),
    "container_memory_usage": memory_used,
    "container_memory_rss": lambda one: one.memory_rss_bytes,
}


def _summed(pod: PodReading, figure: Callable[[ContainerReading], float | None]) -> float | None:
    """Over the containers that have it; None where none has."""
    known = [value for one in pod.containers if (value := figure(one)) is not None]
    return sum(known) if known else None


def _worst(pod: PodReading, figure: Callable[[ContainerReading], Value]) -> Value:
    return max((value for one in pod.containers if (value := figure(one)) is not None), default=None)


def _cpi(pod: PodReading) -> Value:
    """Cycles per instruction, by what each container uses."""
    known = [(one.extra["cpi"], one.cpu_usage_cores or 0.0) for one in pod.containers if "cpi" in one.extra]
    weight = sum(use for _, use in known)
    return round(sum(cpi * use for cpi, use in known) / weight, SHARE_DIGITS) if weight else None


def _pod_wanted(pod: PodReading) -> Value:
    parts = (
        _summed(pod, lambda one: one.cpu_usage_cores),
        _summed(pod, lambda one: one.sched_wait_tasks),
        _summed(pod, lambda one: one.throttled_cores),
    )
    return _wanted(*parts)


POD: Mapping[str, Callable[[PodReading], Value]] = {
    "pod_cpu_usage": lambda one: _cores(_summed(one, lambda part: part.cpu_usage_cores)),
    "pod_cpu_usage_ratio": lambda one: _ratio(
        _summed(one, lambda part: part.cpu_usage_cores), one.pod.cpu_request_millis / 1000
    ),
    "pod_cpu_load_1min": lambda one: _cores(_summed(one, lambda part: part.load1)),
    "pod_cpu_cpi": _cpi,
    "pod_cpu_wanted": _pod_wanted,
    "pod_cpu_throttled_ratio": lambda one: _ratio(_worst(one, lambda part: part.throttled_ratio), 1),
    "pod_cpu_pressure_percent": lambda one: _worst(one, lambda part: _waiting(part.cpu_pressure)),
    "pod_memory_pressure_percent": lambda one: _worst(one, lambda part: _waiting(part.memory_pressure)),
    "pod_memory_usage": lambda one: _summed(one, memory_used),
    "pod_memory_usage_ratio": lambda one: _ratio(_summed(one, memory_used), one.pod.memory_request_bytes),
    "pod_memory_rss": lambda one: _summed(one, lambda part: part.memory_rss_bytes),
}
"""Ratios are of what the pod asks for, as a HorizontalPodAutoscaler's utilization is."""


def offer_series(offered: Offered | None) -> dict[str, Value]:
    """Return what the node offers to reclaimed pods."""
    if offered is None:
        return {}
    return {
        "node_reclaimed_cpu_offer": round(offered.cpu_millis / 1000, CPU_DIGITS),
        "node_reclaimed_memory_offer": offered.memory_bytes,
    }


def label(value: str | None) -> str | None:
    """Return a text as a label's value; None if it cannot be one, because outside of a cluster nothing has checked
    it."""
    return value if value is not None and len(value) <= _LONGEST and _LABEL.fullmatch(value) else None


def chosen_labels(pods: Sequence[Pod], keys: Sequence[str]) -> dict[str, tuple[str | None, ...]]:
    """A column for each label that a pod has at all."""
    columns = {key: tuple(label(pod.labels.get(key)) for pod in pods) for key in keys}
    return {key: column for key, column in columns.items() if any(value is not None for value in column)}
