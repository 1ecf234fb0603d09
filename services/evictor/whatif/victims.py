"""The kinds `victim_scores`, `victim_filters` and `eviction_frequency`: which candidate of a NUMA node goes."""

from typing import Annotated

from pydantic import AfterValidator, Field

from services.evictor.core.arbiter.eviction_frequency import EvictionSpan, evictions, per_pod
from services.evictor.core.detectors.cpu.victim_scores import (
    FREQUENCY_LIMITS_PER_H,
    Filter,
    RatedPod,
    Scorer,
    best_first,
    passes,
)
from shared.whatif.decisions import Answer, Question, decision


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


@decision("victim_scores", area="eviction_cpu_load", asks=ScoresQuestion, answers=ScoresAnswer)
def victim_scores(question: ScoresQuestion) -> ScoresAnswer:
    """Scores of eviction candidates, and their order."""
    pods = (
        RatedPod(pod.name, pod.usage_avg_ratio, pod.name, pod.eviction_ratio_by_window_h or {}) for pod in question.pods
    )
    scored = best_first(pods, question.scorers, question.gap_ratio, question.frequency_limits_per_h)
    return ScoresAnswer(scores={pod.of: points for pod, points in scored}, order=[pod.of for pod, _ in scored])


class FilteredPod(Question):
    """A pod, the kind of its owner, and whether it runs on an overloaded NUMA node; null: unknown."""

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
    pods = (pod for pod in question.pods if passes(filters, kinds, pod.owner_kind, pod.on_overloaded_numa))
    return FiltersAnswer(kept=[pod.name for pod in pods])


class Bucket(Question):
    """Evictions in a span of time that began `age_s` ago."""

    age_s: Annotated[float, Field(ge=0)]
    duration_s: Annotated[float, Field(ge=0)]
    count: Annotated[int, Field(ge=0)]


class FrequencyQuestion(Question):
    """The buckets, the window, and how many pods the workload should have."""

    buckets: list[Bucket]
    window_s: Annotated[float, Field(ge=0)]
    expected_pods: int | None = None


class FrequencyAnswer(Answer):
    """Evictions in the window, in all and by pod, and when the newest bucket with any began."""

    count: int
    ratio: float | None
    last_eviction_age_s: float | None


@decision("eviction_frequency", area="eviction_cpu_load", asks=FrequencyQuestion, answers=FrequencyAnswer)
def eviction_frequency(question: FrequencyQuestion) -> FrequencyAnswer:
    """How often was a workload evicted in a window?"""
    spans = [EvictionSpan(bucket.age_s, bucket.duration_s, bucket.count) for bucket in question.buckets]
    count = evictions(spans, question.window_s)
    ages = [span.age_s for span in spans if span.count > 0]
    return FrequencyAnswer(
        count=count, ratio=per_pod(count, question.expected_pods), last_eviction_age_s=min(ages, default=None)
    )
