"""The kinds `metric_aggregate` and `metric_query`: answers from samples."""

from collections.abc import Iterable

from services.central.core.custom_metrics.aggregates import AGGREGATES, newest_ms, window_s
from services.central.core.custom_metrics.query import AskedMetric, MetricView, items_of, read_query
from services.central.core.custom_metrics.series import SeriesIndex
from services.central.whatif.custom_metrics.samples import (
    AREA,
    LabelledObject,
    SampleGiven,
    TimeMs,
    labels_by_object,
)
from shared.whatif.decisions import Answer, Question, decision


class PointGiven(Question):
    """One value at its time."""

    timestamp_ms: TimeMs
    value: float


class AggregateQuestion(Question):
    """One group of samples."""

    samples: list[PointGiven]


class AggregateAnswer(Answer):
    """Every aggregate of the group; an empty one has none."""

    avg: float | None = None
    max: float | None = None
    min: float | None = None
    p99: float | None = None
    p95: float | None = None
    p90: float | None = None
    latest: float | None = None
    timestamp_ms: int | None = None
    window_s: int | None = None
    count: int


@decision("metric_aggregate", area=AREA, asks=AggregateQuestion, answers=AggregateAnswer)
def metric_aggregate(question: AggregateQuestion) -> AggregateAnswer:
    """Mean, bounds, percentiles and latest of a group of samples."""
    points = [(given.timestamp_ms, given.value) for given in question.samples]
    if not points:
        return AggregateAnswer(count=0)
    values = {name: aggregate(points) for name, aggregate in AGGREGATES.items()}
    return AggregateAnswer(timestamp_ms=newest_ms(points), window_s=window_s(points), count=len(points), **values)


class QueryAsked(Question):
    """A question; without object it is about an external metric."""

    metric: str
    namespace: str | None = None
    object: str | None = None
    object_name: str | None = None
    object_selector: str = ""
    metric_selector: str = ""


class QueryQuestion(Question):
    """The samples and objects there are, and what is asked."""

    samples: list[SampleGiven]
    objects: list[LabelledObject] | None = None
    query: QueryAsked


class ItemAnswer(Answer):
    """One value of one object, or of one series of an external metric."""

    object_name: str | None
    labels: dict[str, str]
    value: float
    timestamp_ms: int
    window_s: int | None
    count: int


class QueryAnswer(Answer):
    """The values by object and labels."""

    items: list[ItemAnswer]
    error: str | None = None
    message: str | None = None


def view_of(samples: Iterable[SampleGiven], objects: Iterable[LabelledObject] | None) -> MetricView:
    """All samples, also two of one time: here nothing is stored."""
    index = SeriesIndex()
    for given in samples:
        index.series(given.sample.key).put(given.timestamp_ms, given.value)
    return MetricView(index, labels_by_object(objects))


@decision("metric_query", area=AREA, asks=QueryQuestion, answers=QueryAnswer)
def metric_query(question: QueryQuestion) -> QueryAnswer:
    """Which values a question about a metric gets."""
    asked = question.query
    query = read_query(
        AskedMetric(
            asked.metric, asked.namespace, asked.object, asked.object_name, asked.object_selector, asked.metric_selector
        )
    )
    items = items_of(query, view_of(question.samples, question.objects))
    return QueryAnswer(
        items=[
            ItemAnswer(
                object_name=item.name, labels=dict(item.labels), value=item.value, timestamp_ms=item.timestamp_ms,
                window_s=item.window_s, count=item.count,
            )
            for item in items
        ]
    )  # fmt: skip
