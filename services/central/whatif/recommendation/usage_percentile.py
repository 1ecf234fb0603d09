"""The what-if kind `usage_percentile`: a percentile of usage from a decaying histogram."""

from typing import Annotated

from pydantic import Field

from services.central.core.recommendation.histogram import BucketScheme, UsageHistogram
from shared.whatif.decisions import Answer, Question, decision


class HistogramAsked(Question):
    """Where buckets begin and how fast weights fade."""

    first_bucket: float
    max: float
    growth_ratio: float = 0.05
    epsilon: float = 0.0001
    half_life_s: float | None = None


class SampleAsked(Question):
    """A value and when it was seen."""

    value: float
    t_s: float
    weight: Annotated[float, Field(ge=0)] = 1.0


class PercentileQuestion(Question):
    """Samples, and the part of their weight that the answer is not to be exceeded by."""

    histogram: HistogramAsked
    percentile: float
    samples: list[SampleAsked]


class PercentileAnswer(Answer):
    """The percentile, its bucket, and how many buckets there are."""

    value: float | None
    bucket: int | None
    buckets: int | None


@decision("usage_percentile", area="recommendation", asks=PercentileQuestion, answers=PercentileAnswer)
def usage_percentile(question: PercentileQuestion) -> PercentileAnswer:
    """Percentile of usage from a decaying histogram."""
    asked = question.histogram
    scheme = BucketScheme(asked.first_bucket, asked.max, asked.growth_ratio, asked.epsilon, asked.half_life_s)
    newest_s = max((sample.t_s for sample in question.samples), default=0.0)
    histogram = UsageHistogram.empty(scheme, newest_s)
    for sample in question.samples:
        histogram = histogram.add(sample.value, sample.t_s, sample.weight)
    found = histogram.percentile(question.percentile)
    if found is None:
        return PercentileAnswer(value=None, bucket=None, buckets=scheme.buckets)
    return PercentileAnswer(value=found.value, bucket=found.bucket, buckets=scheme.buckets)
