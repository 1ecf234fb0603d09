"""The store of the metrics API: what it takes, how long, and that its counts are what lies in it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.custom_metrics.series import (
    MeteredObject,
    MetricSample,
    MetricTable,
    SeriesIndex,
    SeriesKey,
)
from services.central.core.custom_metrics.store import MetricStore

WEB = MeteredObject("pods", "d", "web")
TABLE = MetricTable("m", "pods", "d")


def sample(at_ms: int, value: float = 1.0, about: MeteredObject = WEB, **labels: str) -> MetricSample:
    return MetricSample(SeriesKey("m", about, tuple(sorted(labels.items()))), at_ms, value)


def known(about: MeteredObject) -> Mapping[str, str] | None:
    return {} if about == WEB else None


def collect(store: MetricStore, now_ms: int) -> None:
    for _ in store.collect(now_ms):
        pass


@pytest.mark.parametrize(
    ("given_sample", "reason"),
    [
        pytest.param(sample(1000, about=WEB._replace(name="gone")), "unknown_object", id="no such pod"),
        pytest.param(sample(-1, about=WEB._replace(namespace="e")), "unknown_object", id="goes before expired"),
        pytest.param(sample(699_999), "expired", id="older than is kept"),
        pytest.param(sample(700_000), None, id="as old as is kept"),
        pytest.param(sample(700_000, about=MeteredObject(None, "d", None)), None, id="external: no object to know"),
    ],
)
def test_what_is_taken(given_sample: MetricSample, reason: str | None) -> None:
    store = MetricStore(objects=known)
    added, dropped = store.insert([given_sample], now_ms=1_000_000)
    assert (added, dict(dropped)) == ((1, {}) if reason is None else (0, {reason: 1}))


def test_of_one_time_the_first_stays() -> None:
    store = MetricStore()
    store.insert([sample(1000, 1.0), sample(1000, 2.0), sample(1000, 3.0, a="b")], now_ms=1000)
    assert (store.series, store.samples) == (2, 2)
    assert list(store.index.objects(TABLE)["web"][()].points()) == [(1000, 1.0)]


def test_what_was_removed_does_not_come_back_with_a_clock_that_went_back() -> None:
    store = MetricStore(expire_s=300)
    collect(store, 1_000_000)
    added, dropped = store.insert([sample(699_999), sample(700_000)], now_ms=500_000)
    assert (added, dict(dropped)) == (1, {"expired": 1})


def test_removal_takes_the_bound_itself_and_leaves_nothing_empty() -> None:
    store = MetricStore(expire_s=300)
    store.insert([sample(700_000), sample(700_001, a="b")], now_ms=700_001)
    collect(store, 1_000_000)
    assert (store.series, store.samples) == (1, 1)
    collect(store, 1_000_001)
    assert (store.series, store.samples, list(store.index.tables())) == (0, 0, [])


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from(["web", "db"]), st.sampled_from(["", "x"]), st.booleans()),
        max_size=60,
    )
)
def test_counts_are_what_lies_there_and_series_are_in_order(steps: list[tuple[int, str, str, bool]]) -> None:
    store = MetricStore(expire_s=0.01)
    for number, (at_ms, name, label, collected) in enumerate(steps):
        store.insert([sample(at_ms, about=WEB._replace(name=name), a=label)], now_ms=number)
        if collected:
            collect(store, number)
        series = [one for own in store.index.objects(TABLE).values() for one in own.values()]
        assert store.series == len(series)
        assert store.samples == sum(map(len, series))
        assert all(len(one) and list(one.times_ms) == sorted(set(one.times_ms)) for one in series)


def test_equal_times_have_the_largest_value_last() -> None:
    series = SeriesIndex().series(SeriesKey("m", WEB, ()))
    for at_ms, value in ((2, 5.0), (1, 9.0), (2, 3.0), (2, 7.0), (2, 6.0)):
        series.put(at_ms, value)
    assert list(series.points()) == [(1, 9.0), (2, 3.0), (2, 5.0), (2, 6.0), (2, 7.0)]
