"""The taint of a lost node, and which of its pods go (docs/facts/katalyst-cluster.md#lost-agents)."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from services.central.core.lost_nodes.rules import EVICT_S, TAINT_S
from services.central.core.strict import StrictModel

TAINT_KEY = "node.kubernetes.io/unschedulable"
TAINT_EFFECT = "NoScheduleForReclaimedTasks"
LATER_EFFECT = "NoSchedule"
LATER_QOS = "reclaimed_cores"

Step = Literal["wait", "taint", "evict"]


class CnrTaint(StrictModel):
    """A taint of a CustomNodeResource; `qos_level` belongs to the later of its two shapes."""

    key: str
    value: str | None = None
    effect: str
    qos_level: str | None = None

    @property
    def ours(self) -> bool:
        """Whether it is the one that central sets on a lost node, in either shape."""
        if self.key != TAINT_KEY:
            return False
        return self.effect == TAINT_EFFECT or (self.effect == LATER_EFFECT and self.qos_level == LATER_QOS)

    @model_serializer(mode="wrap")
    def _said(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}


LOST = CnrTaint(key=TAINT_KEY, effect=TAINT_EFFECT)
"""As the tutorial prints it."""


def with_lost_taint(taints: Sequence[CnrTaint], *, lost: bool) -> tuple[list[CnrTaint], bool]:
    """The taints that a CNR should have, ours last, and whether that is a change.

    Ours stays in the shape in which it is found; the order of taints means nothing, so a mere move is no change.
    """
    own = [taint for taint in taints if taint.ours]
    kept = (own[:1] or [LOST]) if lost else []
    return [taint for taint in taints if not taint.ours] + kept, kept != own


def next_step(
    not_ready_s: float,
    *,
    tainted: bool,
    has_reclaimed_pods: bool,
    taint_s: float = TAINT_S,
    evict_s: float = EVICT_S,
) -> Step:
    """Return what is due for a node that has been lost for `not_ready_s`: the taint first, the eviction in a later
    pass."""
    if not_ready_s > taint_s and not tainted:
        return "taint"
    # Never both in one pass: the taint must have been there before pods go, or their successors could come back.
    if not_ready_s > evict_s and tainted and has_reclaimed_pods:
        return "evict"
    return "wait"
