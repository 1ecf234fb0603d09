"""The reply to a GET of a metric: its status, and its body in the words of the group and version that was asked."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from services.central.core.custom_metrics.paths import (
    BAD_REQUEST,
    EXTERNAL,
    NOT_FOUND,
    Get,
    MetricsRequest,
    read_request,
)
from services.central.core.custom_metrics.quantity import quantity_of
from services.central.core.custom_metrics.query import (
    EVERY_OBJECT,
    MetricItem,
    MetricView,
    items_of,
    read_query,
)
from shared.errors import Refused

OK = 200
STATUSES = {NOT_FOUND: 404, BAD_REQUEST: 400}
_KINDS = {
    "endpoints": "Endpoints",
    "ingresses": "Ingress",
    "daemonsets": "DaemonSet",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "cronjobs": "CronJob",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "persistentvolumes": "PersistentVolume",
    "replicationcontrollers": "ReplicationController",
}
"""Resources whose kind is not their name without its last letter."""


@dataclass(frozen=True, slots=True)
class MetricsReply:
    """Status and body; the body of a refusal is a Status."""

    status: int
    body: dict[str, Any]
    items: int = 0


def reply_to(get: Get, view: MetricView) -> MetricsReply:
    """Answer a GET. A list without values is empty; a named object without a value is not found."""
    try:
        request = read_request(get)
        query = read_query(request.asked)
    except Refused as refusal:
        return refusal_reply(str(refusal), NOT_FOUND if refusal.reason == NOT_FOUND else BAD_REQUEST)
    items = items_of(query, view)
    asked = request.asked
    if not items and asked.kind is not None and asked.name != EVERY_OBJECT:
        where = f" in namespace {asked.namespace}" if asked.namespace else ""
        return refusal_reply(f"{asked.metric}: {asked.kind} {asked.name}{where} has no fresh value", NOT_FOUND)
    grouped = bool(query.group_by)
    return MetricsReply(OK, _list(request, [_item(request, item, grouped=grouped) for item in items]), len(items))


def refusal_reply(message: str, reason: str) -> MetricsReply:
    """Return a Status with the reason of the refusal."""
    code = STATUSES[reason]
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return MetricsReply(code, body | {"reason": reason, "code": code})


def _list(request: MetricsRequest, items: list[dict[str, Any]]) -> dict[str, Any]:
    kind = "ExternalMetricValueList" if request.group == EXTERNAL else "MetricValueList"
    return {"kind": kind, "apiVersion": f"{request.group}/{request.version}", "metadata": {}, "items": items}


def _item(request: MetricsRequest, item: MetricItem, *, grouped: bool) -> dict[str, Any]:
    metric, labels = request.asked.metric, dict(item.labels)
    said: dict[str, Any] = {"timestamp": _time(item.timestamp_ms), "value": quantity_of(item.value)}
    if item.window_s is not None:
        said["windowSeconds" if request.version == "v1beta2" else "window"] = item.window_s
    if request.group == EXTERNAL:
        return {"metricName": metric, "metricLabels": labels} | said
    selector = {"matchLabels": labels} if grouped else None
    named: dict[str, Any] = {"metricName": metric, "selector": selector}
    if request.version == "v1beta2":
        named = {"metric": {"name": metric, "selector": selector}}
    return {"describedObject": _described(request, item)} | said | named


def _described(request: MetricsRequest, item: MetricItem) -> dict[str, Any]:
    where = {"namespace": request.asked.namespace} if request.asked.namespace else {}
    return {"kind": kind_of(request.asked.kind or ""), "name": item.name, "apiVersion": "v1"} | where


def kind_of(resource: str) -> str:
    """The kind of a resource, that people and clients know it by: `pods` is Pod."""
    plural = resource.partition(".")[0]
    return _KINDS.get(plural) or plural.removesuffix("s").capitalize()


def _time(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
