"""The taint of a lost node, and which of its pods go (docs/facts/katalyst-cluster.md#lost-agents)."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from services.central.core.lost_nodes.rules import EVICT_S, TAINT_S
from shared.contracts.pod import QosClass
from shared.core.decisions import Answer, Question, decision

TAINT_KEY = "node.kubernetes.io/unschedulable"
TAINT_EFFECT = "NoScheduleForReclaimedTasks"
LATER_EFFECT = "NoSchedule"
LATER_QOS = "reclaimed_cores"

Step = Literal["wait", "taint", "evict"]


class CnrTaint(Question):
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
    """What is due for a node that has been lost for so long: first the taint, the eviction in a later look."""
    if not_ready_s > taint_s and not tainted:
        return "taint"
    if not_ready_s > evict_s and tainted and has_reclaimed_pods:
        return "evict"
    return "wait"


class NodePod(Question):
    """A pod on the node."""

    name: str
    qos: QosClass


def reclaimed(pods: Iterable[NodePod]) -> list[str]:
    """Names of the pods that a lost node loses, ascending."""
    return sorted(pod.name for pod in pods if pod.qos == "reclaimed_cores")


class LostTaintQuestion(Question):
    """The taints of a CNR, and whether its node is lost."""

    taints: list[CnrTaint]
    lost: bool


class LostTaintAnswer(Answer):
    """The taints it should have."""

    taints: list[CnrTaint]
    changed: bool


@decision("lost_node_taint", area="central", asks=LostTaintQuestion, answers=LostTaintAnswer)
def lost_node_taint(question: LostTaintQuestion) -> LostTaintAnswer:
    """The taint of a lost node on its CNR."""
    taints, changed = with_lost_taint(question.taints, lost=question.lost)
    return LostTaintAnswer(taints=taints, changed=changed)


class LostEvictionsQuestion(Question):
    """A node that is not ready, and its pods."""

    tainted: bool
    not_ready_s: float
    evict_period_s: Annotated[float, Field(ge=0)] = EVICT_S
    pods: list[NodePod]


class LostEvictionsAnswer(Answer):
    """Pods to evict, ascending."""

    evict: list[str]


@decision("lost_node_evictions", area="central", asks=LostEvictionsQuestion, answers=LostEvictionsAnswer)
def lost_node_evictions(question: LostEvictionsQuestion) -> LostEvictionsAnswer:
    """Which pods of a lost node go."""
    pods = reclaimed(question.pods)
    step = next_step(
        question.not_ready_s,
        tainted=question.tainted,
        has_reclaimed_pods=bool(pods),
        evict_s=question.evict_period_s,
    )
    return LostEvictionsAnswer(evict=pods if step == "evict" else [])
