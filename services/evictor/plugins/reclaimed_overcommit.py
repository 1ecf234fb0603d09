"""Detects reclaimed pods that request far more than is offered, and evicts the largest request.

The rule is `reclaimed_pressure` (docs/facts/katalyst-eviction.md#reclaimed-resources).
"""

import math

from services.evictor.core.detectors.reclaimed.overcommit import (
    RequestingPod,
    first_overcommit,
    largest_first,
    offers_by_resource,
    ratios_by_resource,
    requested,
)
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.pod_figures import reclaimed_requests
from shared.contracts.envelope import Reason
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, Pod, canonical_resource
from shared.core.quantities import Multiple


class ReclaimedOvercommitSettings(PluginSettings):
    """Thresholds as multiples of the offer."""

    eviction_threshold: dict[str, Multiple] = {RECLAIMED_CPU: 5.0, RECLAIMED_MEMORY: 5.0}
    """By resource name, either spelling: requests above this times the offer are pressure."""
    skip_zero_resources: tuple[str, ...] = ()
    """Resources whose offer of 0 is ignored."""


def evaluate(_memory: None, view: View, settings: ReclaimedOvercommitSettings) -> tuple[None, Pressure | Silence]:
    """Compare the requests of the reclaimed pods with the offer."""
    if view.reclaimed is None:
        return None, "unknown"
    found = first_overcommit(view.reclaimed, _staying(view), settings.eviction_threshold, settings.skip_zero_resources)
    if found is None:
        return None, "calm"
    return None, _pressure(found.offer.spelled, found.observed, found.offer.amount, found.threshold)


def near(view: View, settings: ReclaimedOvercommitSettings) -> Pressure | None:
    """Return the requests against the threshold, for the resource that is closest to it."""
    offers = {} if view.reclaimed is None else offers_by_resource(view.reclaimed)
    found = []
    for resource, ratio in ratios_by_resource(settings.eviction_threshold).items():
        if resource in offers:
            requests, offer = requested(_staying(view), resource), offers[resource]
            found.append(_pressure(offer.spelled, requests, offer.amount, ratio * offer.amount))
    return max(found, key=lambda p: (_share(p), p.scope), default=None)


def _share(pressure: Pressure) -> float:
    """Return how much of the threshold is used up."""
    if pressure.observed <= 0:
        return 0.0
    # If nothing is offered, any request exceeds the threshold, whatever the ratio.
    return pressure.observed / pressure.threshold if pressure.threshold > 0 else math.inf


def _pressure(scope: str, requests: float, offered: float, threshold: float) -> Pressure:
    return Pressure(
        hard=True,
        scope=scope,
        observed=requests,
        threshold=threshold,
        why=Reason(
            rule="requests above ratio times offer",
            numbers={"requests": requests, "offered": offered, "threshold": threshold},
        ),
    )


def rank(view: View, pressure: Pressure, _settings: ReclaimedOvercommitSettings) -> tuple[Candidate, ...]:
    """Rank the reclaimed pods that request the scarce resource, the largest request first."""
    resource = canonical_resource(pressure.scope)
    return tuple(
        Candidate(
            pod.of,
            Reason(rule="largest request first", numbers={"request": pod.request(resource)}),
            pod.request(resource),
        )
        for pod in largest_first(_staying(view), resource)
    )


def _staying(view: View) -> list[RequestingPod[Pod]]:
    """Return the pods with their requests, without pods that are already terminating."""
    return [
        RequestingPod((pod.namespace, pod.name), pod.qos, reclaimed_requests(pod), pod)
        for pod in (reading.pod for reading in view.pods)
        if not pod.terminating
    ]


PLUGIN = Plugin(
    name="reclaimed-resource-pressure-eviction-plugin",
    settings=ReclaimedOvercommitSettings,
    start=lambda: None,
    evaluate=evaluate,
    rank=rank,
    near=near,
)
