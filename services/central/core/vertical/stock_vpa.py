"""Stock VerticalPodAutoscaler objects that ask to be applied in place, by their own recommender's figures.

Their updater must be off, and their status belongs to their recommender, so an annotation reports the result.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import Field

from services.central.core.recommendation.objects.resource_recommend import APPLY, IN_PLACE
from services.central.core.recommendation.objects.workloads import amounts_of
from services.central.core.recommendation.vpa_target import COMPUTE, EVERY_CONTAINER, ResizePolicy
from services.central.core.vertical.vpa_object import (
    MAX_POLICIES,
    MAX_RESOURCES,
    Text,
    VpaContainerPolicy,
    VpaPart,
    VpaSeen,
    VpaTargetRef,
    VpaWanted,
    policies_of,
    read_spec,
    seen_vpa,
)
from shared.core.api_kind import ApiKind
from shared.core.text.document import mapping
from shared.errors import Refused

STOCK_VPAS: Final = ApiKind(
    "autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "verticalpodautoscalers", namespaced=True
)
APPLIED_SAID: Final = "recommendation.sublet.io/applied"
"""Annotation of a stock object, whose status is its recommender's: what became of it."""


class StockUpdatePolicy(VpaPart):
    """Who changes pods; with `Off` the autoscaler's own updater does not."""

    update_mode: Text = "Auto"


class StockContainerPolicy(VpaContainerPolicy):
    """The same of a stock object, by which cpu and memory are controlled."""

    mode: Text = "Auto"
    controlled_resources: Annotated[list[Text], Field(max_length=MAX_RESOURCES)] = list(COMPUTE)


class StockResourcePolicy(VpaPart):
    """The policies of all containers."""

    container_policies: Annotated[list[StockContainerPolicy], Field(max_length=MAX_POLICIES)] | None = None


class StockVpaSpec(VpaPart):
    """The spec, field by field."""

    target_ref: VpaTargetRef
    update_policy: StockUpdatePolicy = StockUpdatePolicy()
    resource_policy: StockResourcePolicy = StockResourcePolicy()


def stock_vpa_of(document: Mapping[str, Any]) -> VpaSeen | None:
    """Read a stock object; None if it does not ask Sublet to apply it.

    Raises:
        Refused: as `katalyst_vpa_of`.
    """
    annotations = mapping(mapping(document.get("metadata"), "metadata").get("annotations"), "annotations")
    if annotations.get(APPLY) != IN_PLACE:
        return None
    seen = seen_vpa(document, STOCK_VPAS, _stock_wanted)
    if seen is None:
        return None
    return replace(seen, own=_own(seen.status), status={}, said=str(annotations.get(APPLIED_SAID) or ""))


def _own(status: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """The targets of a stock recommender; what cannot be read is left out."""
    given = status.get("recommendation")
    rows = given.get("containerRecommendations") if isinstance(given, Mapping) else None
    found = {}
    for row in rows[:MAX_POLICIES] if isinstance(rows, list) else ():
        name = row.get("containerName") if isinstance(row, Mapping) else None
        if isinstance(name, str) and (amounts := amounts_of(row.get("target"))):
            found[name] = amounts
    return found


def _stock_wanted(given: object) -> VpaWanted:
    spec = read_spec(StockVpaSpec, given)
    if spec.update_policy.update_mode != "Off":
        said = f"updateMode {spec.update_policy.update_mode!r}: its own updater changes the pods; want Off"
        raise Refused(said, reason="UpdaterWorks")
    rows = spec.resource_policy.container_policies or ()
    policies = {EVERY_CONTAINER: ResizePolicy()} | policies_of(spec.target_ref, rows)
    left_alone = {one.container_name: ResizePolicy(controlled_resources=()) for one in rows if one.mode == "Off"}
    return VpaWanted(spec.target_ref.name, "Inplace", "All", policies | left_alone)
