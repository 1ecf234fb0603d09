"""Which candidate should go: scores and filters (docs/facts/katalyst-eviction.md#numa-cpu)."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field

from shared.core.decisions import Answer, Question, decision

Filter = Literal["OwnerRef", "OverloadNuma"]
Scorer = Literal["Usage", "WorkloadEvictionFrequency"]

FREQUENCY_LIMITS_PER_H = (0.15, 0.3, 0.5)
"""Evictions per pod and hour: below the first a workload has hardly been touched, from the third on it is spared."""
SPARED_PER_RATIO = -10_000.0
USAGE_REACH = 0.3
USAGE_SCORE = 60.0
TOO_SMALL_SHARE, TOO_SMALL_SCORE = 0.4, -1000
"""A pod that uses no more than this share of the gap would not close it."""


def usage_score(usage_ratio: float | None, gap_ratio: float | None) -> int:
    """High where a pod uses just what is too much; 0 without history and where it is far from that."""
    if usage_ratio is None or gap_ratio is None:
        return 0
    if usage_ratio <= TOO_SMALL_SHARE * gap_ratio:
        return TOO_SMALL_SCORE
    distance = abs(usage_ratio - abs(gap_ratio))
    return _rounded(USAGE_SCORE * (1 - distance / USAGE_REACH)) if distance < USAGE_REACH else 0


def frequency_score(ratio_by_window_h: Mapping[str, float], limits_per_h: Sequence[float]) -> int:
    """High where a workload was seldom evicted: the mean over the windows, short ones count more; 0 without history."""
    windows = [(float(hours), ratio) for hours, ratio in sorted(ratio_by_window_h.items())]
    weights = sum(1 / hours for hours, _ in windows)
    scored = sum(_of_ratio(ratio / hours, limits_per_h) / hours for hours, ratio in windows)
    return _rounded(scored / weights) if windows else 0


def _of_ratio(per_h: float, limits_per_h: Sequence[float]) -> float:
    low, middle, high = limits_per_h
    if per_h >= high:
        return SPARED_PER_RATIO * per_h
    if per_h >= middle:
        return 10 * (1 - (per_h - middle) / (high - middle))
    if per_h >= low:
        return 45 + 10 * (1 - (per_h - low) / (middle - low))
    return 90 + 10 * (1 - per_h / low)


def _rounded(value: float) -> int:
    """To the nearest integer, halves away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _window(hours: str) -> str:
    if not (0 < float(hours) < float("inf")):
        raise ValueError(f"{hours!r}: want hours above 0")
    return hours


class ScoredPod(Question):
    """A candidate: how often its workload was evicted, by window, and what it uses as a ratio of the node."""

    name: str
    eviction_ratio_by_window_h: dict[Annotated[str, AfterValidator(_window)], Annotated[float, Field(ge=0)]] | None = (
        None
    )
    usage_avg_ratio: float | None = None

    @property
    def order(self) -> str:
        """The last word of every ordering."""
        return self.name


class ScoresQuestion(Question):
    """Which scorers, what is too much, and the candidates."""

    scorers: list[Scorer]
    gap_ratio: float | None = None
    frequency_limits_per_h: Annotated[list[float], Field(min_length=3, max_length=3)] = list(FREQUENCY_LIMITS_PER_H)
    pods: list[ScoredPod]


class ScoresAnswer(Answer):
    """By pod, and the names, highest score first."""

    scores: dict[str, int]
    order: list[str]


P = TypeVar("P", bound=ScoredPod)


def score(pod: ScoredPod, scorers: Collection[Scorer], gap_ratio: float | None, limits_per_h: Sequence[float]) -> int:
    """The sum over the scorers."""
    total = usage_score(pod.usage_avg_ratio, gap_ratio) if "Usage" in scorers else 0
    if "WorkloadEvictionFrequency" in scorers:
        total += frequency_score(pod.eviction_ratio_by_window_h or {}, limits_per_h)
    return total


def best_first(
    pods: Iterable[P], scorers: Collection[Scorer], gap_ratio: float | None, limits_per_h: Sequence[float]
) -> list[tuple[P, int]]:
    """Candidates with their scores, the highest first, then by name."""
    scored = [(pod, score(pod, scorers, gap_ratio, limits_per_h)) for pod in pods]
    return sorted(scored, key=lambda item: (-item[1], item[0].order))


@decision("victim_scores", area="eviction_cpu_load", asks=ScoresQuestion, answers=ScoresAnswer)
def victim_scores(question: ScoresQuestion) -> ScoresAnswer:
    """Scores of eviction candidates, and their order."""
    scored = best_first(question.pods, question.scorers, question.gap_ratio, question.frequency_limits_per_h)
    return ScoresAnswer(scores={pod.name: points for pod, points in scored}, order=[pod.name for pod, _ in scored])


def kept(
    filters: Collection[Filter],
    skipped_owner_kinds: Collection[str],
    owner_kind: str | None,
    on_overloaded_numa: bool | None,
) -> bool:
    """Whether a pod stays a candidate; what is unknown keeps it one."""
    if "OwnerRef" in filters and owner_kind is not None and owner_kind in skipped_owner_kinds:
        return False
    return not ("OverloadNuma" in filters and on_overloaded_numa is False)


class FilteredPod(Question):
    """A pod, the kind of its owner, and whether it runs on a NUMA node with too much load; null: unknown."""

    name: str
    owner_kind: str | None = None
    on_overloaded_numa: bool | None = None


class FiltersQuestion(Question):
    """Which filters, and the pods."""

    filters: list[Filter]
    skipped_owner_kinds: list[str]
    pods: list[FilteredPod]


class FiltersAnswer(Answer):
    """Names, in the order given."""

    kept: list[str]


@decision("victim_filters", area="eviction_cpu_load", asks=FiltersQuestion, answers=FiltersAnswer)
def victim_filters(question: FiltersQuestion) -> FiltersAnswer:
    """Which pods stay eviction candidates?"""
    filters, kinds = question.filters, question.skipped_owner_kinds
    pods = (pod for pod in question.pods if kept(filters, kinds, pod.owner_kind, pod.on_overloaded_numa))
    return FiltersAnswer(kept=[pod.name for pod in pods])
