"""Questions about metrics: aggregates, groups, selectors, stale series, and quantities."""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.custom_metrics.aggregates import AGGREGATES, percentile, window_s
from services.central.core.custom_metrics.quantity import LARGEST, quantity_of
from services.central.core.custom_metrics.query import AskedMetric, MetricView, items_of, read_query
from services.central.core.custom_metrics.series import MeteredObject, SeriesIndex, SeriesKey
from shared.contracts.kube.quantities import parse_millis
from shared.errors import Refused

LABELS: Mapping[MeteredObject, Mapping[str, str]] = {
    MeteredObject("pods", "d", "web-1"): {"app": "web"},
    MeteredObject("pods", "d", "web-2"): {"app": "web", "canary": "yes"},
    MeteredObject("pods", "d", "db"): {"app": "db"},
}
SAMPLES = [
    ("web-1", {"c": "a"}, 12_000, 4.0),
    ("web-1", {"c": "a"}, 14_000, 7.0),
    ("web-1", {"c": "b", "zone": "z"}, 18_000, 12.0),
    ("web-1", {"c": "b", "zone": "z"}, 20_000, 10.0),
    ("web-2", {"c": "a"}, 10_000, 1.0),
    ("web-2", {}, 10_000, 2.0),
    ("gone", {}, 20_000, 9.0),
]
FINITE = st.floats(allow_nan=False, allow_infinity=False)
POINTS = st.lists(st.tuples(st.integers(0, 10**9), FINITE), min_size=1, max_size=40)


def view(**changed: Any) -> MetricView:
    index = SeriesIndex()
    for name, labels, at_ms, value in SAMPLES:
        key = SeriesKey("m", MeteredObject("pods", "d", name), tuple(sorted(labels.items())))
        index.series(key).put(at_ms, value)
    return MetricView(index, **({"objects": LABELS.get} | changed))


def ask(metric: str = "m", seen: MetricView | None = None, **asked: Any) -> list[tuple[Any, ...]]:
    query = read_query(AskedMetric(metric, **({"namespace": "d", "kind": "pods"} | asked)))
    found = items_of(query, view() if seen is None else seen)
    return [(item.name, dict(item.labels), item.value, item.timestamp_ms, item.window_s, item.count) for item in found]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        pytest.param({}, [("web-1", 10.0), ("web-2", 2.0)], id="the newest, of equal times the largest; no lost pods"),
        pytest.param({"name": "*"}, [("web-1", 10.0), ("web-2", 2.0)], id="a star is every object"),
        pytest.param({"name": "web-2"}, [("web-2", 2.0)], id="one"),
        pytest.param({"name": "gone"}, [], id="a pod that is no more"),
        pytest.param({"name": "nobody"}, [], id="a name without series"),
        pytest.param({"object_selector": "canary"}, [("web-2", 2.0)], id="by labels of the object"),
        pytest.param({"object_selector": "!canary"}, [("web-1", 10.0)], id="by a label it has not"),
        pytest.param({"metric_selector": "c=a"}, [("web-1", 7.0), ("web-2", 1.0)], id="by labels of the series"),
        pytest.param({"namespace": "e"}, [], id="another namespace"),
        pytest.param({"kind": "nodes", "namespace": None}, [], id="another kind"),
        pytest.param({"metric": "m_agg_p50"}, [], id="no such aggregate is a name of a metric"),
        pytest.param({"metric": "_agg_avg"}, [], id="an aggregate of nothing"),
        pytest.param({"metric": "m_agg_avg"}, [("web-1", 8.25), ("web-2", 1.5)], id="mean over all series"),
        pytest.param({"metric": "m_agg_latest", "metric_selector": "c=a"}, [("web-1", 7.0), ("web-2", 1.0)],
                     id="aggregate of what is selected"),
        pytest.param({"metric": "m_agg_max", "metric_selector": "groupBy=c"},
                     [("web-1", 7.0), ("web-1", 12.0), ("web-2", 1.0)], id="groups, and who has no such label is out"),
        pytest.param({"metric": "m_agg_max", "metric_selector": "groupBy in (c,zone),c!=b"},
                     [("web-1", 7.0), ("web-2", 1.0)], id="groups of what is selected"),
    ],
)  # fmt: skip
def test_a_question_gets(asked: dict[str, Any], wanted: list[tuple[str, float]]) -> None:
    assert [(name, value) for name, _, value, *_ in ask(**asked)] == wanted


def test_an_item_says_its_labels_time_window_and_count() -> None:
    assert ask("m_agg_avg", name="web-1") == [("web-1", {}, 8.25, 20_000, 8, 4)]
    assert ask("m_agg_max", name="web-1", metric_selector="groupBy in (zone,c),c=b") == [
        ("web-1", {"c": "b", "zone": "z"}, 12.0, 20_000, 2, 2)
    ]
    assert ask(name="web-1") == [("web-1", {"c": "b", "zone": "z"}, 10.0, 20_000, None, 1)]


def test_stale_series_answer_nothing() -> None:
    assert [item[:3] for item in ask(seen=view(fresh_from_ms=14_000))] == [("web-1", {"c": "b", "zone": "z"}, 10.0)]
    assert ask("m_agg_avg", view(fresh_from_ms=14_001), name="web-1")[0][2] == 11.0
    assert ask(seen=view(fresh_from_ms=20_001)) == []


def test_a_name_that_others_have_is_ours_unless_somebody_has_series_of_it() -> None:
    seen = view(aliases={"usage": "m"})
    assert ask("usage", seen) == ask(seen=seen)
    assert ask("usage_agg_avg", seen) == ask("m_agg_avg", seen)
    assert ask("usage", seen, kind="nodes", namespace=None) == []
    seen.index.series(SeriesKey("usage", MeteredObject("pods", "d", "db"), ())).put(1, 3.0)
    assert [item[:3] for item in ask("usage", seen)] == [("db", {}, 3.0)]


def test_without_a_list_of_objects_all_exist_and_none_has_labels() -> None:
    assert [item[0] for item in ask(seen=view(objects=None))] == ["gone", "web-1", "web-2"]
    assert ask(seen=view(objects=None), object_selector="app=web") == []


def test_external_metrics_have_one_item_for_each_set_of_labels() -> None:
    index = SeriesIndex()
    for labels, at_ms, value in (((("t", "b"),), 1, 5.0), ((("t", "a"),), 2, 3.0), ((("t", "a"),), 1, 9.0)):
        index.series(SeriesKey("q", MeteredObject(None, "d", None), labels)).put(at_ms, value)
    seen = MetricView(index, LABELS.get)
    assert [(item[1], item[2]) for item in ask("q", seen, kind=None)] == [({"t": "a"}, 3.0), ({"t": "b"}, 5.0)]
    assert [(item[1], item[2]) for item in ask("q_agg_max", seen, kind=None)] == [({}, 9.0)]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"metric_selector": "groupBy=c"}, id="groups without aggregate"),
        pytest.param({"metric": "m_agg_max", "metric_selector": "groupBy"}, id="groups by nothing"),
        pytest.param({"metric": "m_agg_max", "metric_selector": "groupBy!=c"}, id="groups by all but one"),
        pytest.param({"metric_selector": "a in"}, id="a list that does not come"),
        pytest.param({"object_selector": ",,"}, id="of the object"),
        pytest.param({"object_selector": "a" * 1025}, id="longer than a selector may be"),
    ],
)
def test_a_selector_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        ask(**asked)
    assert refused.value.reason == "bad_selector"


@given(POINTS)
def test_every_aggregate_is_within_the_values(points: list[tuple[int, float]]) -> None:
    values = sorted(value for _, value in points)
    for name, aggregate in AGGREGATES.items():
        found = aggregate(points)
        slack = abs(found) * 1e-9 + math.ulp(0.0) * len(points)
        assert values[0] - slack <= found <= values[-1] + slack, name
    assert window_s(points) >= 0


@given(POINTS)
def test_percentiles_rise(points: list[tuple[int, float]]) -> None:
    assert percentile(points, 90) <= percentile(points, 95) <= percentile(points, 99)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (-0.0, "0"), (0.5, "500m"), (12, "12"), (25_000, "25k"), (25_500, "25500"), (1.234567, "1235m"),
        (1e-9, "1m"), (-1e-9, "-1m"), (-0.5, "-500m"), (-1.5, "-1500m"), (-2000, "-2k"), (1e18, "1E"),
        (12345678901.5, "12345678900"), (0.1 + 0.2, "300m"), (1e300, str(LARGEST)), (-1e300, str(-LARGEST)),
    ],
)  # fmt: skip
def test_a_quantity_is_canonical(value: float, text: str) -> None:
    assert quantity_of(value) == text


@given(st.floats(-1e15, 1e15))
def test_a_quantity_is_the_value_to_ten_digits_away_from_zero(value: float) -> None:
    wanted = Decimal(f"{value:.10g}") * 1000
    found = parse_millis(quantity_of(value))
    assert abs(found) >= abs(wanted)
    assert abs(found - wanted) <= 1
