"""How a service performs: sentinels of its baseline, its use over all pods, and its indicators, for its descriptor.

A figure that no pod reports is left out: absent is not zero.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from services.central.core.recommendation.baseline import ServicePod, baseline_of
from services.central.core.recommendation.objects.workloads import WorkloadPod
from services.central.core.service_profiles.descriptor import (
    EXTENDED_SENTINEL,
    SENTINEL,
    DescriptorSeen,
)
from shared.contracts.kube.quantities import format_millis

SCOPE: Final = "workload"
FRESH_S: Final = 60.0
"""Older figures of a pod say nothing of now."""

_AGGREGATORS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "avg": lambda values: sum(values) / len(values),
    "max": max,
    "sum": sum,
}


@dataclass(frozen=True, slots=True)
class PodStanding:
    """A node's last report about one pod."""

    at_s: float
    series: Mapping[str, float] = field(default_factory=dict)
    containers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By container: `cpu` in cores, `memory` in bytes."""


def sentinels(seen: DescriptorSeen, pods: Iterable[WorkloadPod]) -> dict[str, str | None]:
    """The annotations of a descriptor; None where there must be none."""
    spec = seen.spec
    service = [ServicePod(pod.created_s, pod.name, pod.active) for pod in pods]
    if spec is None:
        return {}
    extended = {
        one.name: mark
        for one in spec.extended_indicator or ()
        if (mark := _sentinel(one.baseline_percent, service)) is not None
    }
    own = _sentinel(spec.baseline_percent, service)
    return {
        SENTINEL: None if own is None else json.dumps(own, separators=(",", ":")),
        EXTENDED_SENTINEL: json.dumps(extended, separators=(",", ":"), sort_keys=True) if extended else None,
    }


def _sentinel(percent: int | None, pods: Sequence[ServicePod]) -> dict[str, str] | None:
    found = baseline_of(percent, pods).sentinel
    return None if found is None else {"timeStamp": _time(found.created_s), "podName": found.name}


def indicators_now(seen: DescriptorSeen, pods: Sequence[PodStanding], now_s: float) -> dict[str, float]:
    """Return the service's current indicators, by name, as far as its nodes report them."""
    fresh = [pod for pod in pods if now_s - pod.at_s <= FRESH_S]
    return {one["name"]: one["current"] for one in _indicators(seen, fresh)}


def standing(seen: DescriptorSeen, pods: Sequence[PodStanding], now_s: float, window_s: float) -> dict[str, Any]:
    """The status of a descriptor, but for its conditions."""
    fresh = [pod for pod in pods if now_s - pod.at_s <= FRESH_S]
    if not fresh:
        return {"aggMetrics": [], "businessStatus": []}
    names = sorted({name for pod in fresh for name in pod.containers})
    metrics = [
        {
            "aggregator": aggregator,
            "scope": SCOPE,
            "items": [
                {
                    "timestamp": _time(max(pod.at_s for pod in fresh)),
                    "window": f"{window_s:.0f}s",
                    "containers": [{"name": name, "usage": _usage(name, fresh, made)} for name in names],
                }
            ],
        }
        for aggregator, made in _AGGREGATORS.items()
    ]
    return {"aggMetrics": metrics if names else [], "businessStatus": _indicators(seen, fresh)}


def _usage(name: str, pods: Sequence[PodStanding], made: Callable[[Sequence[float]], float]) -> dict[str, str]:
    found = {}
    for resource in ("cpu", "memory"):
        values = [value for pod in pods if (value := pod.containers.get(name, {}).get(resource)) is not None]
        if values:
            amount = made(values)
            found[resource] = format_millis(round(amount * 1000)) if resource == "cpu" else str(round(amount))
    return found


def _indicators(seen: DescriptorSeen, pods: Sequence[PodStanding]) -> list[dict[str, Any]]:
    """The mean over the pods of each indicator that is a series of pods, by its name with or without `pod_`."""
    spec = seen.spec
    if spec is None:
        return []
    named = [*(spec.business_indicator or ()), *(spec.system_indicator or ()), *(spec.extended_indicator or ())]
    found = []
    for name in dict.fromkeys(one.name for one in named):
        values = [value for pod in pods if (value := pod.series.get(name, pod.series.get(f"pod_{name}"))) is not None]
        if values:
            found.append({"name": name, "current": round(sum(values) / len(values), 6)})
    return found


def _time(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
