"""Report use in `status.nodeMetricStatus`: of the node, its NUMA nodes and its QoS classes.

Use moves with every sample, so a change is never urgent: it is written with the next refresh.

Facts: docs/facts/katalyst-cluster.md#customnoderesource.
"""

from typing import Any

from services.reporter.core.field import FieldSettings, FieldView, Fragment, ReportField, plain
from shared.contracts.kube.quantities import format_millis, format_units
from shared.contracts.sample import NodeSample, NumaReading, PoolReading
from shared.core.cgroups.layout import POOL_OF_QOS

QOS_OF_POOL = {pool: qos for qos, pool in POOL_OF_QOS.items()}


def fragment(view: FieldView) -> Fragment | None:
    """Return the use of the newest sample; None if the sample is stale."""
    if view.sample is None or not view.sample_fresh:
        return None
    status: dict[str, Any] = {}
    if node := _node_metric(view.sample):
        status["nodeMetric"] = node
    groups = [_group(pool, view.sample) for pool in sorted(view.sample.pools, key=lambda pool: pool.pool)]
    if groups:
        status["groupMetric"] = groups
    if not status:
        return None
    time = view.sample.sent_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"status": {"nodeMetricStatus": {"updateTime": time, **status}}}


def _never(_before: Fragment | None, _now: Fragment | None, _settings: FieldSettings) -> bool:
    return False


def _node_metric(sample: NodeSample) -> dict[str, Any]:
    reading = sample.node_reading
    used = _difference(reading.memory_total_bytes, reading.memory_available_bytes)
    metric: dict[str, Any] = {}
    if usage := _usage(reading.cpu_usage_cores, used):
        metric["genericUsage"] = usage
    numas = [row for numa in sorted(sample.numas, key=lambda n: n.numa) if (row := _numa(numa))]
    if numas:
        metric["numaUsage"] = numas
    return metric


def _numa(numa: NumaReading) -> dict[str, Any] | None:
    usage = _usage(None, _difference(numa.memory_total_bytes, numa.memory_free_bytes))
    return {"numaId": numa.numa, "usage": usage} if usage else None


def _group(pool: PoolReading, sample: NodeSample) -> dict[str, Any]:
    memory = pool.memory_working_set_bytes if pool.memory_working_set_bytes is not None else pool.memory_usage_bytes
    level = QOS_OF_POOL.get(pool.pool, pool.pool)
    group: dict[str, Any] = {"QoSLevel": level}
    if usage := _usage(pool.cpu_usage_cores, memory):
        group["genericUsage"] = usage
    pods = sorted(reading.pod.key for reading in sample.pods if reading.pod.qos == level)
    return group | ({"podList": pods} if pods else {})


def _usage(cpu_cores: float | None, memory_bytes: int | None) -> dict[str, str]:
    usage = {} if cpu_cores is None else {"cpu": format_millis(round(cpu_cores * 1000))}
    return usage if memory_bytes is None else usage | {"memory": format_units(memory_bytes)}


def _difference(total: int | None, rest: int | None) -> int | None:
    return None if total is None or rest is None else max(0, total - rest)


def _watches(_view: FieldView) -> None:
    """Nothing here is urgent."""


FIELD = ReportField(FieldSettings, plain(fragment), _never, _watches)
