"""`Suits` scores how well a node suits a pod: the mean of the available scores."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from services.central.core.scheduling.allocation_score import AllocationScoring, ScoredResource
from services.central.core.scheduling.cluster.judge import Judge, Looking, NodeLeft, Now
from services.central.core.scheduling.cluster.placement_view import BINDING, NodeState, PlacementView
from services.central.core.scheduling.load.expected_use import together
from services.central.core.scheduling.load.filter import EXPIRATION_S
from services.central.core.scheduling.load.score import load_score
from services.central.core.scheduling.numa.score import NumaScoring, numa_score
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY

Strategy = Literal["least_allocated", "most_allocated"]
"""Spread or pack."""
_RECLAIMED = (ScoredResource(RECLAIMED_CPU), ScoredResource(RECLAIMED_MEMORY))
_SCORINGS: Mapping[Strategy, AllocationScoring] = {
    "least_allocated": AllocationScoring("least_allocated", _RECLAIMED),
    "most_allocated": AllocationScoring("most_allocated", _RECLAIMED),
}
_BALANCED = AllocationScoring("balanced", _RECLAIMED)


@dataclass(frozen=True, slots=True)
class SuitRules:
    """Weights of the load, and the age from which load figures are ignored."""

    weights: Mapping[str, int]
    dominant_weight: int = 0
    expiration_s: float = EXPIRATION_S
    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    """By scheduler profile; `least_allocated` for all others."""


class Suits:
    """Scores nodes for pods."""

    def __init__(self, view: PlacementView, judge: Judge, rules: SuitRules) -> None:
        self._view, self._judge, self._rules = view, judge, rules

    def scores(self, looking: Looking, nodes: Iterable[str], now: Now) -> dict[str, int]:
        """Of each node 0 to 100, the more the better."""
        return {node: self._score(looking, self._view.state(node, now.monotonic_s), now) for node in nodes}

    def _score(self, looking: Looking, state: NodeState, now: Now) -> int:
        left = self._judge.left(looking, state)
        parts = [self._load(looking, state, left, now)]
        strategy = self._rules.strategies.get(looking.pod.scheduler, "least_allocated")
        if looking.asks_reclaimed and state.offered is not None:
            scorings = _SCORINGS[strategy], _BALANCED
            parts += [one.score(looking.reclaimed, state.offered, left.requested) for one in scorings]
        bindable = looking.pod.seen.ask.bindable
        if bindable is not None and left.machine is not None:
            parts.append(numa_score(bindable, BINDING, left.machine, NumaScoring(strategy)).score)
        return sum(parts) // len(parts)

    def _load(self, looking: Looking, state: NodeState, left: NodeLeft, now: Now) -> int:
        """Return 0 without a report, or with a stale one, because an unknown node should not be preferred."""
        if (
            state.load is None
            or left.expected is None
            or now.wall_s - state.load.measured_s >= self._rules.expiration_s
        ):
            return 0
        expected = together(left.expected.everything, looking.estimate)
        return load_score(expected, state.allocatable, self._rules.weights, self._rules.dominant_weight)
