"""Paths of the aggregated API: which question a GET asks (docs/facts/kubernetes.md#metrics-apis)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from services.central.core.custom_metrics.query import AskedMetric
from shared.errors import Refused

CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
VERSIONS: Mapping[str, tuple[str, ...]] = {CUSTOM: ("v1beta2", "v1beta1"), EXTERNAL: ("v1beta1",)}
"""Of each group, the preferred first."""
NOT_FOUND, BAD_REQUEST = "NotFound", "BadRequest"
Reason = Literal["NotFound", "BadRequest"]


@dataclass(frozen=True, slots=True)
class Get:
    """A GET: its path, still encoded, and of its parameters the selectors."""

    path: str
    label_selector: str = ""
    metric_label_selector: str = ""


@dataclass(frozen=True, slots=True)
class MetricsRequest:
    """Group, version, and what is asked there."""

    group: str
    version: str
    asked: AskedMetric


def group_and_version(path: str) -> tuple[str, str, list[str]] | None:
    """Split a path below /apis into the group, the version and the rest; None: another path, or no such version."""
    before, apis, *parts = [unquote(part) for part in path.split("/")] if path.count("/") >= 2 else ["", ""]
    if before or apis != "apis" or len(parts) < 2 or parts[1] not in VERSIONS.get(parts[0], ()):
        return None
    return parts[0], parts[1], parts[2:]


def read_request(get: Get) -> MetricsRequest:
    """Parse a GET.

    Raises:
        Refused: `NotFound`: another path or version; `BadRequest`: parts are missing.
    """
    found = group_and_version(get.path)
    if found is None:
        raise Refused(f"{get.path}: want /apis/GROUP/VERSION/… of {_served()}", reason=NOT_FOUND)
    group, version, parts = found
    asked = _external(get, parts) if group == EXTERNAL else _custom(get, parts)
    return MetricsRequest(group, version, asked)


def _served() -> str:
    return ", ".join(f"{group}/{version}" for group, versions in VERSIONS.items() for version in versions)


def _external(get: Get, parts: list[str]) -> AskedMetric:
    wanted = "namespaces/NAMESPACE/METRIC"
    match parts:
        case ["namespaces", namespace, metric] if namespace and metric:
            return AskedMetric(metric, namespace, metric_selector=get.label_selector)
    raise _refusal(get, parts, wanted, most=3)


def _custom(get: Get, parts: list[str]) -> AskedMetric:
    namespaced = parts[:1] == ["namespaces"]
    match parts:
        case [] | [*_, ""]:
            pass
        case ["namespaces", namespace, "metrics", metric] if namespace:
            # It is the namespace that is measured, and a namespace lies in none.
            return AskedMetric(metric, None, "namespaces", namespace, get.label_selector, get.metric_label_selector)
        case ["namespaces", namespace, kind, name, metric] if namespace and kind and name:
            return AskedMetric(metric, namespace, kind, name, get.label_selector, get.metric_label_selector)
        case [kind, name, metric] if kind and name and not namespaced:
            return AskedMetric(metric, None, kind, name, get.label_selector, get.metric_label_selector)
    wanted = "namespaces/NAMESPACE/RESOURCE/NAME/METRIC" if namespaced else "RESOURCE/NAME/METRIC"
    raise _refusal(get, parts, wanted, most=5 if namespaced else 3)


def _refusal(get: Get, parts: list[str], wanted: str, *, most: int) -> Refused:
    return Refused(
        f"{get.path}: want {wanted} behind the version", reason=NOT_FOUND if len(parts) > most else BAD_REQUEST
    )
