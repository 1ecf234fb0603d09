"""The what-if kind `allocation_score`: how well nodes suit a pod by what is taken of them."""

from services.central.core.scheduling.allocation_score import (
    AllocationScoring,
    AllocationStrategy,
    ScoredResource,
    ShapePoint,
)
from services.central.core.scheduling.amounts import one_spelling
from services.central.whatif.scheduling import AREA
from services.central.whatif.scheduling.pods import Amounts, PlacedContainer
from shared.whatif.decisions import Answer, Question, decision


class WeighedResource(Question):
    """A resource and its weight."""

    name: str
    weight: int = 1


class UtilizationScore(Question):
    """A point of the line from utilization to score."""

    utilization_percent: int
    score: int


class TakenNode(Question):
    """A node and what pods ask for there; `nonzero_requested` null: the same, with what they do not write."""

    name: str
    allocatable: Amounts
    requested: Amounts = {}
    nonzero_requested: Amounts | None = None


class AllocationScoreQuestion(Question):
    """A strategy, a pod, and nodes."""

    strategy: AllocationStrategy
    resources: list[WeighedResource]
    shape: list[UtilizationScore] = []
    containers: list[PlacedContainer]
    overhead: Amounts = {}
    nodes: list[TakenNode]


class AllocationScoreAnswer(Answer):
    """By node, 0 to 100; null where the question is refused."""

    scores: dict[str, int] | None
    error: str | None = None
    message: str | None = None


@decision("allocation_score", area=AREA, asks=AllocationScoreQuestion, answers=AllocationScoreAnswer)
def allocation_score(question: AllocationScoreQuestion) -> AllocationScoreAnswer:
    """How well does each node suit the pod by what is taken of it?"""
    scoring = AllocationScoring(
        question.strategy,
        tuple(ScoredResource(one.name, one.weight) for one in question.resources),
        tuple(ShapePoint(one.utilization_percent, one.score) for one in question.shape),
    )
    request = scoring.request(
        [one.requests for one in question.containers if one.init],
        [one.requests for one in question.containers if not one.init],
        question.overhead,
    )
    scores = {}
    for node in question.nodes:
        counted = scoring.counts_unsaid and node.nonzero_requested is not None
        taken = (node.nonzero_requested or {}) if counted else node.requested
        scores[node.name] = scoring.score(request, one_spelling(node.allocatable), one_spelling(taken))
    return AllocationScoreAnswer(scores=scores)
