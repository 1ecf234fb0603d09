"""`Comparison`: what both agents gave at the same moments, and how it differs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.migrate.compare import difference
from sublet.migrate.compare.difference import Comparison, DifferenceRow, Wish

FIGURES = st.floats(min_value=0, max_value=1e12, allow_nan=False)


def of_cores(*pairs: tuple[float, float]) -> Comparison:
    found = Comparison()
    for theirs, ours in pairs:
        found.add({"cpu_cores": theirs}, {"cpu_cores": ours})
    return found


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(4, 4)], (1, 4, 4, 0, 0, 0, 0, 0, 0)),
        ([(4, 6), (4, 2)], (2, 4, 4, 0, 2, -2, 2, 1, 1)),
        ([(8, 6), (8, 7), (8, 8)], (3, 8, 7, -1, 2, -2, 0, 2, 0)),
        ([(0, n) for n in range(1, 101)], (100, 0, 50.5, 50.5, 95, 1, 100, 0, 100)),
        ([(1.1 + 2.2, 3.3)], (1, 1.1 + 2.2, 3.3, 3.3 - (1.1 + 2.2), 4.4e-16, -4.4e-16, -4.4e-16, 0, 0)),
    ],
)
def test_figures_of_a_row(pairs: list[tuple[float, float]], expected: tuple[float, ...]) -> None:
    (row,) = of_cores(*pairs).rows()
    found = (
        row.moments,
        row.theirs_mean,
        row.ours_mean,
        row.mean,
        row.p95,
        row.lowest,
        row.highest,
        row.less,
        row.more,
    )
    assert found == pytest.approx(expected, abs=1e-15)


@given(st.lists(st.tuples(FIGURES, FIGURES), min_size=1, max_size=50))
def test_laws_of_a_row(pairs: list[tuple[float, float]]) -> None:
    (row,) = of_cores(*pairs).rows()
    turned: DifferenceRow = of_cores(*((ours, theirs) for theirs, ours in pairs)).rows()[0]
    assert row.less + row.more <= row.moments == len(pairs)
    assert row.lowest <= row.highest
    assert 0 <= row.p95 <= max(abs(row.lowest), abs(row.highest))
    assert (row.less, row.more, row.lowest) == (turned.more, turned.less, -turned.highest)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [({}, {"cpu_cores": 1.0}), ({"cpu_cores": 1.0}, {}), ({"cpu_cores": math.nan}, {"cpu_cores": 1.0})],
)
def test_what_one_does_not_say_is_not_zero(theirs: Wish, ours: Wish) -> None:
    found = Comparison()
    found.add(theirs, ours)
    assert (found.rows(), found.moments, found.one_sided) == ([], 1, 1)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(difference, "MAX_MOMENTS", 3)
    found = of_cores(*[(1, 2)] * 10)
    assert (found.moments, found.rows()[0].moments) == (10, 3)
