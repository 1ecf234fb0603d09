"""Reclaimed pods ask for far more than is left to sublet: the largest request goes.

The rule is `reclaimed_pressure` (docs/facts/katalyst-eviction.md#reclaimed-resources).
"""

import math

from services.evictor.core.detectors.reclaimed.overcommit import (
    ReclaimedPod,
    ReclaimedQuestion,
    largest_first,
    offers_by_resource,
    ratios_by_resource,
    reclaimed_pressure,
)
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from shared.contracts.envelope import Reason
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, Pod, canonical_resource
from shared.core.quantities import Multiple


class Settings(PluginSettings):
    """Thresholds as ratios of what is offered."""

    eviction_threshold: dict[str, Multiple] = {RECLAIMED_CPU: 5.0, RECLAIMED_MEMORY: 5.0}
    """By resource name, either spelling: requests above this times the offer are pressure."""
    skip_zero_resources: tuple[str, ...] = ()
    """Resources of which an offer of 0 is not judged."""


def evaluate(_memory: None, view: View, settings: Settings) -> tuple[None, Pressure | Silence]:
    """Compare the requests of the reclaimed pods with what is offered."""
    if view.reclaimed is None:
        return None, "unknown"
    answer = reclaimed_pressure(
        ReclaimedQuestion(
            allocatable=dict(view.reclaimed),
            hard_thresholds=settings.eviction_threshold,
            skip_zero_resources=list(settings.skip_zero_resources),
            pods=list(_staying(view)),
        )
    )
    if answer.scope is None or answer.observed is None or answer.threshold is None:
        return None, "calm"
    offered = view.reclaimed[answer.scope]
    return None, _pressure(answer.scope, answer.observed, offered, answer.threshold, hard=answer.met == "HARD_MET")


def near(view: View, settings: Settings) -> Pressure | None:
    """The requests against their threshold, of the resource that is closest to it."""
    offers = {} if view.reclaimed is None else offers_by_resource(view.reclaimed)
    found = []
    for resource, ratio in ratios_by_resource(settings.eviction_threshold).items():
        if resource in offers:
            requests = sum(a.request(resource) for a in _staying(view) if a.qos == "reclaimed_cores")
            offer = offers[resource]
            found.append(_pressure(offer.spelled, requests, offer.amount, ratio * offer.amount, hard=True))
    return max(found, key=lambda p: (_share(p), p.scope), default=None)


def _share(pressure: Pressure) -> float:
    """How much of the threshold is used up."""
    if pressure.observed <= 0:
        return 0.0
    return pressure.observed / pressure.threshold if pressure.threshold > 0 else math.inf


def _pressure(scope: str, requests: float, offered: float, threshold: float, *, hard: bool) -> Pressure:
    return Pressure(
        hard=hard,
        scope=scope,
        observed=requests,
        threshold=threshold,
        why=Reason(
            rule="requests above ratio times offer",
            numbers={"requests": requests, "offered": offered, "threshold": threshold},
        ),
    )


def rank(view: View, pressure: Pressure, _settings: Settings) -> tuple[Candidate, ...]:
    """Reclaimed pods that ask for the scarce resource, the largest request first."""
    resource = canonical_resource(pressure.scope)
    asking = [pod for pod in _staying(view) if pod.qos == "reclaimed_cores"]
    return tuple(
        Candidate(
            a.pod,
            Reason(rule="largest request first", numbers={"request": a.request(resource)}),
            a.request(resource),
        )
        for a in largest_first(asking, resource)
    )


class _Asking(ReclaimedPod):
    pod: Pod


def _staying(view: View) -> list[_Asking]:
    """A pod already on its way out takes its request with it."""
    return [_asking(reading.pod) for reading in view.pods if not reading.pod.terminating]


def _asking(pod: Pod) -> _Asking:
    amounts = {RECLAIMED_CPU: pod.cpu_request_millis, RECLAIMED_MEMORY: pod.memory_request_bytes}
    return _Asking(
        name=pod.name,
        namespace=pod.namespace,
        qos=pod.qos,
        requests={resource: amount for resource, amount in amounts.items() if amount > 0},
        pod=pod,
    )


PLUGIN = Plugin(
    name="reclaimed-resource-pressure-eviction-plugin",
    settings=Settings,
    start=lambda: None,
    evaluate=evaluate,
    rank=rank,
    near=near,
)
