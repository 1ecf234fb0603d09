"""Detects that reclaimed pods request more than a share of the offer: soft, so that some run elsewhere.

The marks are Koordinator's (docs/facts/koordinator-evict.md#by-allocatable). Off by default, as in Koordinator:
`reclaimed_overcommit` is on, and reacts to requests far above the offer.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.evictor.core.detectors.marks import EvictionMarks
from services.evictor.core.detectors.reclaimed.allocatable import amount_to_free
from services.evictor.core.detectors.reclaimed.overcommit import offers_by_resource
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.pod_figures import reclaimed_requests
from shared.contracts.envelope import Reason
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, Pod

Resource = Literal["memory", "cpu"]
NAMES: dict[Resource, str] = {"memory": RECLAIMED_MEMORY, "cpu": RECLAIMED_CPU}
SCOPES: dict[Resource, str] = {resource: f"{resource}.requests.reclaimed" for resource in NAMES}
RESOURCE_OF: dict[str, Resource] = {scope: resource for resource, scope in SCOPES.items()}
MID_MAX = 7999
"""Highest priority of the class koord-mid; tenants are above it."""


class ReclaimedAllocatableSettings(PluginSettings):
    """Two marks on the requests, in percent of the offer."""

    enabled: bool = False
    met_for_s: Annotated[float, Field(ge=0, le=3600)] = 60.0
    """How long the pressure must last, in every sample, before the plugin acts, because the offer falls with each
    burst of the tenants."""
    resources: Annotated[tuple[Resource, ...], Field(min_length=1)] = ("memory", "cpu")
    """Resources that are checked, each separately, in this order."""
    threshold_percent: Annotated[int, Field(ge=1, le=10_000)] = 110
    """Requests above this percent of the offer are too much."""
    lower_percent: Annotated[int, Field(ge=0, le=9_999)] = 100
    """Pods are evicted until the others request at most this percent. It must be below the threshold."""
    highest_priority: Annotated[int, Field(le=MID_MAX)] = 5999
    """Pods of a higher priority neither count nor are evicted."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.marks.usable:
            raise ValueError(
                f"lower_percent {self.lower_percent}: want less than threshold_percent, which is "
                f"{self.threshold_percent}; lower it, or raise threshold_percent"
            )
        return self

    @property
    def marks(self) -> EvictionMarks:
        """Return the marks as the detector takes them."""
        return EvictionMarks(self.threshold_percent, self.lower_percent)


def evaluate(
    relieving: Resource | None, view: View, settings: ReclaimedAllocatableSettings
) -> tuple[Resource | None, Pressure | Silence]:
    """Compare the requests with the offer, and after the threshold was met with the lower mark."""
    if view.reclaimed is None:
        return None, "unknown"
    offers = offers_by_resource(view.reclaimed)
    for resource in settings.resources:
        offer = offers.get(NAMES[resource])
        if offer is None:
            continue
        requested = sum(_request(pod, resource) for pod in _counting(view, settings))
        freed = amount_to_free(requested, offer.amount, settings.marks)
        if relieving == resource:
            freed = max(freed, requested - settings.marks.target(offer.amount))
        if freed > 0:
            return resource, _pressure(resource, requested, offer.amount, freed, settings)
    return None, "calm"


def _counting(view: View, settings: ReclaimedAllocatableSettings) -> list[Pod]:
    """Return the reclaimed pods up to the priority, without pods that are already terminating."""
    mine = [reading.pod for reading in view.pods if reading.pod.qos == "reclaimed_cores"]
    return [pod for pod in mine if pod.priority <= settings.highest_priority and not pod.terminating]


def _request(pod: Pod, resource: Resource) -> int:
    return reclaimed_requests(pod).get(NAMES[resource], 0)


def _pressure(
    resource: Resource, requested: int, offered: int, freed: int, settings: ReclaimedAllocatableSettings
) -> Pressure:
    return Pressure(
        hard=False,
        scope=SCOPES[resource],
        observed=requested,
        threshold=requested - freed,
        why=Reason(
            rule="requests have exceeded the threshold's part of what is offered, and are above the lower mark",
            numbers={
                "requested": requested,
                "offered": offered,
                "threshold_percent": settings.threshold_percent,
                "lower_percent": settings.lower_percent,
            },
        ),
    )


def rank(view: View, pressure: Pressure, settings: ReclaimedAllocatableSettings) -> tuple[Candidate, ...]:
    """Rank reclaimed pods that request the resource: low priority first, then the largest request."""
    resource = RESOURCE_OF[pressure.scope]
    asking = [(pod, _request(pod, resource)) for pod in _counting(view, settings)]
    order = sorted(asking, key=lambda item: (item[0].priority, -item[1], item[0].key, item[0].uid))
    return tuple(
        Candidate(
            pod,
            Reason(
                rule="low priority first, then the largest request",
                numbers={"priority": pod.priority, "request": request},
            ),
            request,
        )
        for pod, request in order
        if request > 0
    )


PLUGIN = Plugin(
    name="reclaimed-allocatable-eviction-plugin",
    settings=ReclaimedAllocatableSettings,
    start=lambda: None,
    evaluate=evaluate,
    rank=rank,
)
