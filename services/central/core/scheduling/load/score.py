"""`load_score` scores how little loaded a node would be with another pod (docs/facts/scheduling.md#load)."""

from collections.abc import Mapping

from services.central.core.scheduling.amounts import Amounts

WEIGHTS: Mapping[str, int] = {"cpu": 1, "memory": 1}
MAX_SCORE = 100


def load_score(estimated: Amounts, allocatable: Amounts, weights: Mapping[str, int], dominant_weight: int = 0) -> int:
    """The weighted mean of what stays free, 0 to 100; with `dominant_weight` the scarcest resource counts once more."""
    scores = {name: least_used(estimated.get(name, 0), allocatable.get(name, 0)) for name in weights}
    total_weight = sum(weights.values()) + dominant_weight
    if total_weight <= 0:
        return 0
    scarcest = min(scores.values(), default=MAX_SCORE)
    return (sum(scores[name] * weight for name, weight in weights.items()) + scarcest * dominant_weight) // total_weight


def least_used(used: int, capacity: int) -> int:
    """Return the unused part of a capacity, 0 to 100; 0 if more is used, or there is none."""
    return 0 if used > capacity or capacity <= 0 else (capacity - used) * MAX_SCORE // capacity
