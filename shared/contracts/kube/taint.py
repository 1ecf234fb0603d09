"""`Taint` is a mark in a Node's `spec.taints` that keeps new pods away."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field

from shared.contracts.envelope import MessagePart

TAINT_PREFIX = "node.katalyst.kubewharf.io/"
"""Taints under it are Sublet's; all others are somebody else's.

Facts: docs/facts/katalyst-eviction.md#conditions-and-taints.
"""

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
EFFECTS: tuple[TaintEffect, ...] = get_args(TaintEffect)


class Cause(MessagePart):
    """One plugin's pressure behind a taint; the figures, in the unit of the scope, are those that confirmed it."""

    plugin: str
    scope: str
    observed: float
    threshold: float


class Taint(MessagePart):
    """One taint. `causes` is kept only where the substrate has a place for it, else it is empty."""

    model_config = ConfigDict(populate_by_name=True)

    key: Annotated[str, Field(min_length=1)]
    effect: TaintEffect
    time_added: Annotated[datetime | None, Field(alias="timeAdded")] = None
    """UTC, whole seconds; None where whoever set it did not say."""
    causes: tuple[Cause, ...] = ()

    @property
    def ours(self) -> bool:
        """Whether it is under our prefix."""
        return self.key.startswith(TAINT_PREFIX)

    @property
    def keeps_away(self) -> bool:
        """Whether a new pod that does not tolerate it must not start on this node."""
        return self.effect != "PreferNoSchedule"

    def document(self, *, causes: bool = True) -> dict[str, Any]:
        """As the Kubernetes API writes it, with or without what only Sublet adds."""
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        if not causes or not self.causes:
            del document["causes"]
        return dict(sorted(document.items()))


def in_order(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Ascending by key, then effect."""
    return tuple(sorted(taints, key=lambda taint: (taint.key, taint.effect)))
