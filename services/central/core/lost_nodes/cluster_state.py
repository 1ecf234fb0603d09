"""Does central act at all: the state of the cluster (docs/facts/katalyst-cluster.md#lost-agents).

The guards beside it are stricter; this one names the state and sets the pace.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from services.central.core.lost_nodes.rules import ACTIONS_PER_S, MAX_BAD_RATIO
from shared.core.decisions import Answer, Question, decision

State = Literal["Normal", "PartialDisruption", "FullDisruption"]

FEW_NODES = 2
"""So many nodes that are not ready are no disruption while others are ready."""


@dataclass(frozen=True, slots=True)
class Disruption:
    """The state of the cluster, and how many nodes may be acted on in a second."""

    state: State
    actions_per_s: float


def disruption(
    ready: int, not_ready: int, *, ratio: float = MAX_BAD_RATIO, actions_per_s: float = ACTIONS_PER_S
) -> Disruption:
    """Full without any ready node, partial with more than a few and more than `ratio` of all not ready."""
    if ready == 0 and not_ready > 0:
        return Disruption("FullDisruption", 0.0)
    if not_ready > FEW_NODES and not_ready / (ready + not_ready) > ratio:
        return Disruption("PartialDisruption", 0.0)
    return Disruption("Normal", actions_per_s)


NodeCount = Annotated[int, Field(ge=0)]


class ClusterStateQuestion(Question):
    """How many nodes are ready and how many are not."""

    ready_nodes: NodeCount
    not_ready_nodes: NodeCount
    unhealthy_threshold_ratio: float = MAX_BAD_RATIO
    actions_per_s: Annotated[float, Field(ge=0)] = ACTIONS_PER_S


class ClusterStateAnswer(Answer):
    """The state, and the pace: 0 unless normal."""

    state: State
    actions_per_s: float


@decision("cluster_state", area="central", asks=ClusterStateQuestion, answers=ClusterStateAnswer)
def cluster_state(question: ClusterStateQuestion) -> ClusterStateAnswer:
    """Does central act at all?"""
    found = disruption(
        question.ready_nodes,
        question.not_ready_nodes,
        ratio=question.unhealthy_threshold_ratio,
        actions_per_s=question.actions_per_s,
    )
    return ClusterStateAnswer(state=found.state, actions_per_s=found.actions_per_s)
