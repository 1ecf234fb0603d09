"""Discovery of the metrics APIs: what the API server and its clients read to list the metrics."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from services.central.core.custom_metrics.paths import EXTERNAL, NOT_FOUND, VERSIONS
from services.central.core.custom_metrics.reply import OK, MetricsReply, refusal_reply


class MetricName(NamedTuple):
    """A metric that somebody may ask for; without `kind` it is an external one."""

    metric: str
    kind: str | None
    namespaced: bool = False


def discovery_reply(path: str, metrics: Iterable[MetricName]) -> MetricsReply:
    """The group or the version that a path names."""
    match path.split("/"):
        case ["", "apis", group] if group in VERSIONS:
            return MetricsReply(OK, _group(group))
        case ["", "apis", group, version] if version in VERSIONS.get(group, ()):
            return MetricsReply(OK, _resources(group, version, metrics))
    return refusal_reply(f"{path}: want /apis/GROUP or /apis/GROUP/VERSION of {' or '.join(VERSIONS)}", NOT_FOUND)


def _group(group: str) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in VERSIONS[group]]
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": group,
        "versions": versions,
        "preferredVersion": versions[0],
    }


def _resources(group: str, version: str, metrics: Iterable[MetricName]) -> dict[str, Any]:
    if group == EXTERNAL:
        kind, found = "ExternalMetricValueList", {(one.metric, True) for one in metrics if one.kind is None}
    else:
        kind = "MetricValueList"
        found = {(f"{one.kind}/{one.metric}", one.namespaced) for one in metrics if one.kind is not None}
    resources = [
        {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get"]}
        for name, namespaced in sorted(found)
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}",
        "resources": resources,
    }
