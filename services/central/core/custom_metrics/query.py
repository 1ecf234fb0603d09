"""Answers one question about a metric: which series are meant, and their values.

Without an aggregate an object has one item, its newest sample: clients that request a list overwrite by name, so a
history would give an arbitrary value (docs/facts/katalyst-metrics.md#questions).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from services.central.core.custom_metrics.aggregates import AGGREGATES, newest_ms, window_s
from services.central.core.custom_metrics.series import Labels, MeteredObject, MetricSeries, MetricTable, SeriesIndex
from services.central.core.custom_metrics.store import ObjectLabels
from services.central.core.kcc.selectors import Selector, parse_selector
from shared.errors import Refused

BAD_SELECTOR = "bad_selector"
GROUP_BY = "groupBy"
EVERY_OBJECT = "*"
_SUFFIX = "_agg_"


@dataclass(frozen=True, slots=True)
class AskedMetric:
    """A question as received; without `kind` it is about an external metric."""

    metric: str
    namespace: str | None = None
    kind: str | None = None
    name: str | None = None
    object_selector: str = ""
    metric_selector: str = ""


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """A question whose words have been read."""

    table: MetricTable
    name: str | None
    objects: Selector
    series: Selector
    aggregate: str | None
    group_by: frozenset[str]


@dataclass(frozen=True, slots=True)
class MetricView:
    """The data behind questions. Without `objects` every object may exist, and has no labels; series without a
    sample since `fresh_from_ms` are stale and answer nothing."""

    index: SeriesIndex
    objects: ObjectLabels | None = None
    fresh_from_ms: int | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Names that others have for metrics of pods, each with ours."""


@dataclass(frozen=True, slots=True)
class MetricItem:
    """One value. Only aggregates have `window_s`; `labels` are those of the series, or of the group."""

    name: str | None
    labels: Labels
    value: float
    timestamp_ms: int
    window_s: int | None = None
    count: int = 1


def read_query(asked: AskedMetric) -> MetricQuery:
    """Parse the suffix and the selectors of a question.

    Raises:
        Refused: `bad_selector`: one is unreadable, or groups are given without an aggregate.
    """
    metric, found, aggregate = asked.metric.rpartition(_SUFFIX)
    if not found or aggregate not in AGGREGATES:
        metric, aggregate = asked.metric, ""
    series, group_by = _grouped(_selector(asked.metric_selector))
    if group_by and not aggregate:
        raise Refused(
            f"{GROUP_BY} in {asked.metric_selector!r}: only an aggregate has groups; ask for {asked.metric}_agg_avg",
            reason=BAD_SELECTOR,
        )
    return MetricQuery(
        MetricTable(metric, asked.kind, asked.namespace), None if asked.name == EVERY_OBJECT else asked.name,
        _selector(asked.object_selector), series, aggregate or None, group_by,
    )  # fmt: skip


def _selector(text: str) -> Selector:
    try:
        return parse_selector(text)
    except Refused as refusal:
        raise Refused(str(refusal), reason=BAD_SELECTOR) from refusal


def _grouped(selector: Selector) -> tuple[Selector, frozenset[str]]:
    """The selector without the key that groups, and the labels to group by."""
    group_by: set[str] = set()
    for part in selector.requirements:
        if part.key == GROUP_BY:
            if part.operator != "in":
                raise Refused(f"{GROUP_BY}: want = or in, with names of labels", reason=BAD_SELECTOR)
            group_by |= part.values
    rest = tuple(part for part in selector.requirements if part.key != GROUP_BY)
    return Selector(rest), frozenset(group_by)


def items_of(query: MetricQuery, view: MetricView) -> list[MetricItem]:
    """The values, by object and labels."""
    objects = view.index.objects(query.table)
    if not objects and query.table.kind == "pods" and query.table.metric in view.aliases:
        objects = view.index.objects(query.table._replace(metric=view.aliases[query.table.metric]))
    if query.name is not None:
        objects = {query.name: objects[query.name]} if query.name in objects else {}
    found = [
        item
        for name, own in objects.items()
        if _asked_for(name, query, view)
        for item in _items_of_object(name, _series_asked_for(own, query, view), query)
    ]
    return sorted(found, key=lambda item: (item.name or "", item.labels))


def _asked_for(name: str | None, query: MetricQuery, view: MetricView) -> bool:
    """Whether the object exists, and its labels are as asked."""
    if query.table.kind is None:
        return True
    labels: Mapping[str, str] | None = {}
    if view.objects is not None:
        labels = view.objects(MeteredObject(query.table.kind, query.table.namespace, name))
    return labels is not None and query.objects.matches(labels)


def _series_asked_for(
    own: Mapping[Labels, MetricSeries], query: MetricQuery, view: MetricView
) -> Iterator[MetricSeries]:
    for series in own.values():
        if view.fresh_from_ms is not None and series.newest()[0] < view.fresh_from_ms:
            continue
        if not query.series.requirements or query.series.matches(dict(series.labels)):
            yield series


def _items_of_object(name: str | None, chosen: Iterable[MetricSeries], query: MetricQuery) -> Iterator[MetricItem]:
    if query.aggregate is not None:
        for labels, group in _groups(chosen, query.group_by):
            points = [point for series in group for point in series.points()]
            value = AGGREGATES[query.aggregate](points)
            yield MetricItem(name, labels, value, newest_ms(points), window_s(points), len(points))
        return
    newest = [(*series.newest(), series.labels) for series in chosen]
    if query.table.kind is not None and newest:
        # Of equal ones the first labels, so that the answer is the same every time.
        newest = [min(newest, key=lambda one: (-one[0], -one[1], one[2]))]
    for at_ms, value, labels in newest:
        yield MetricItem(name, labels, value, at_ms)


def _groups(chosen: Iterable[MetricSeries], group_by: frozenset[str]) -> Iterable[tuple[Labels, list[MetricSeries]]]:
    """Group series by the requested labels; a series without any of them is in no group."""
    groups: dict[Labels, list[MetricSeries]] = defaultdict(list)
    for series in chosen:
        labels = tuple(label for label in series.labels if label[0] in group_by)
        if labels or not group_by:
            groups[labels].append(series)
    return groups.items()
