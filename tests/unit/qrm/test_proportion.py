"""Pools that want more than there is get their part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.placement.proportion import fit
from shared.errors import Refused


@pytest.mark.parametrize(
    ("wishes", "available", "sizes"),
    [
        ({"a": 4, "b": 2}, 10, {"a": 4, "b": 2}),
        ({"a": 40, "b": 20}, 6, {"a": 4, "b": 2}),
        ({"a": 5, "b": 5, "c": 5}, 8, {"a": 2, "b": 3, "c": 3}),
        ({"a": 100, "b": 1}, 10, {"a": 9, "b": 1}),
        ({"a": 0, "b": 3}, 10, {"a": 1, "b": 3}),
        ({"a": 9, "b": 9, "c": 9}, 3, {"a": 1, "b": 1, "c": 1}),
    ],
)
def test_sizes(wishes: dict[str, int], available: int, sizes: dict[str, int]) -> None:
    assert fit(wishes, available) == sizes


def test_fewer_cpus_than_pools_is_refused() -> None:
    with pytest.raises(Refused, match="2 pools"):
        fit({"a": 1, "b": 1}, 1)


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 100), min_size=1), st.integers(6, 200))
def test_the_sum_fits_nobody_gets_nothing_and_nobody_gets_more_than_wished(
    wishes: dict[str, int], available: int
) -> None:
    sizes = fit(wishes, available)
    assert sizes.keys() == wishes.keys()
    assert sum(sizes.values()) <= available
    assert all(1 <= sizes[name] <= max(1, wish) for name, wish in wishes.items())
    if sum(max(1, wish) for wish in wishes.values()) >= available:
        assert sum(sizes.values()) == available


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 100), min_size=1), st.integers(6, 200))
def test_who_wishes_more_gets_no_less(wishes: dict[str, int], available: int) -> None:
    sizes = fit(wishes, available)
    for one in wishes:
        for other in wishes:
            if wishes[one] > wishes[other]:
                assert sizes[one] >= sizes[other] - 1
