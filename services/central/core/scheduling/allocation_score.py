"""`AllocationScoring` scores how well a node suits a pod by its allocated amounts (docs/facts/scheduling.md#scores)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Literal

from services.central.core.scheduling.amounts import Amounts, effective_request, one_spelling
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, canonical_resource
from shared.errors import Refused

AllocationStrategy = Literal["least_allocated", "most_allocated", "requested_to_capacity_ratio", "balanced"]
MAX_SCORE = 100
MAX_WEIGHT = 100
MAX_POINT_SCORE = 10

_UNSAID = {"cpu": 100, RECLAIMED_CPU: 100, "memory": 200 << 20, RECLAIMED_MEMORY: 200 << 20}
"""Estimate for a resource that a container does not declare; otherwise all such pods would go to one node."""


@dataclass(frozen=True, slots=True)
class ScoredResource:
    """A resource and how much it weighs."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """A point of the line from utilization to score."""

    utilization_percent: int
    score: int


@dataclass(frozen=True, slots=True)
class AllocationScoring:
    """A strategy over resources; `shape` is only for `requested_to_capacity_ratio`.

    Raises:
        Refused: a weight or the shape is out of bounds (`invalid_weight`, `invalid_shape`).
    """

    strategy: AllocationStrategy
    resources: tuple[ScoredResource, ...]
    shape: tuple[ShapePoint, ...] = ()

    def __post_init__(self) -> None:
        """Check the bounds once, and not for each node."""
        most = 1 if self.strategy == "balanced" else MAX_WEIGHT
        for one in self.resources:
            if not 1 <= one.weight <= most:
                raise Refused(f"resource {one.name}: weight {one.weight}: want 1 to {most}", reason="invalid_weight")
        if self.strategy == "requested_to_capacity_ratio" and (fault := _fault(self.shape)):
            raise Refused(f"shape: {fault}", reason="invalid_shape")

    @property
    def counts_unsaid(self) -> bool:
        """Whether requests count that pods do not write; a node's amounts have to be counted the same way."""
        return self.strategy != "balanced"

    def request(self, init: Iterable[Amounts], running: Iterable[Amounts], overhead: Amounts) -> dict[str, int]:
        """Return what a pod would add to a node's amounts."""
        if not self.counts_unsaid:
            return effective_request(init, running, overhead)
        unsaid = {name: _UNSAID[name] for name in self._names() if name in _UNSAID}
        return effective_request(
            [unsaid | one_spelling(one) for one in init], [unsaid | one_spelling(one) for one in running], overhead
        )

    def score(self, request: Amounts, allocatable: Amounts, taken: Amounts) -> int:
        """The score of one node with the pod on it, 0 to 100; all three under today's names."""
        used = [
            (taken.get(name, 0) + request.get(name, 0), capacity, one.weight)
            for one, name in zip(self.resources, self._names(), strict=True)
            if (capacity := allocatable.get(name, 0)) > 0
        ]
        if self.strategy == "balanced":
            return _balanced([min(amount / capacity, 1.0) for amount, capacity, _ in used])
        if self.strategy == "requested_to_capacity_ratio":
            points = [(self._on_line(_percent(amount, capacity)), weight) for amount, capacity, weight in used]
            return _rounded_mean([(score, weight) for score, weight in points if score])
        least = self.strategy == "least_allocated"
        scores = [((_least if least else _most)(amount, capacity), weight) for amount, capacity, weight in used]
        return sum(score * weight for score, weight in scores) // (sum(weight for _, weight in scores) or 1)

    def _names(self) -> Iterator[str]:
        return (canonical_resource(one.name) for one in self.resources)

    def _on_line(self, percent: int) -> int:
        """The score at a utilization, ten times the points': straight between two of them, flat outside."""
        if percent <= self.shape[0].utilization_percent:
            return self.shape[0].score * 10
        for left, right in pairwise(self.shape):
            if percent <= right.utilization_percent:
                rise = (right.score - left.score) * 10 * (percent - left.utilization_percent)
                # Falling lines are cut towards zero too, as the stock scheduler's integers are.
                part = abs(rise) // (right.utilization_percent - left.utilization_percent)
                return left.score * 10 + (part if rise > 0 else -part)
        return self.shape[-1].score * 10


def _fault(shape: Sequence[ShapePoint]) -> str | None:
    if not shape:
        return "none is given; want at least one point of utilization_percent and score"
    at = [point.utilization_percent for point in shape]
    if not all(0 <= percent <= 100 for percent in at) or any(one >= other for one, other in pairwise(at)):
        return f"utilization_percent {at}: want 0 to 100, each above the one before"
    scores = [point.score for point in shape]
    if not all(0 <= score <= MAX_POINT_SCORE for score in scores):
        return f"score {scores}: want 0 to {MAX_POINT_SCORE}"
    return None


def _least(used: int, capacity: int) -> int:
    return max(0, capacity - used) * MAX_SCORE // capacity


def _most(used: int, capacity: int) -> int:
    return min(used, capacity) * MAX_SCORE // capacity


def _percent(used: int, capacity: int) -> int:
    return MAX_SCORE if used > capacity else used * 100 // capacity


def _balanced(fractions: Sequence[float]) -> int:
    return int((1 - _deviation(fractions)) * MAX_SCORE) if fractions else 0


def _deviation(fractions: Sequence[float]) -> float:
    """Return the population deviation; of two values it is half their distance, computed without a root to lose no
    digits."""
    if len(fractions) == 2:
        return abs(fractions[0] - fractions[1]) / 2
    mean = sum(fractions) / len(fractions)
    return sqrt(sum((fraction - mean) ** 2 for fraction in fractions) / len(fractions))


def _rounded_mean(scores: Sequence[tuple[int, int]]) -> int:
    total = sum(weight for _, weight in scores)
    return (2 * sum(score * weight for score, weight in scores) + total) // (2 * total) if total else 0
