"""Pools fitted into what there is, and the CPUs that reclaimed pods borrow from them: tables and laws."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.sizing.fitting import fit_pools, overlap_of
from shared.errors import Refused

pools = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 64), max_size=6)
isolated = st.dictionaries(st.sampled_from(["i1", "i2", "i3"]), st.integers(0, 16), max_size=3)


@pytest.mark.parametrize(
    ("wanted", "fixed", "available", "expand", "sizes", "throttled"),
    [
        pytest.param({"a": 1, "b": 2, "c": 3}, {}, 6, False, {"a": 1, "b": 2, "c": 3}, False, id="fits"),
        pytest.param({"a": 1, "b": 2, "c": 3}, {}, 9, False, {"a": 1, "b": 2, "c": 3}, False, id="keeps what it wants"),
        pytest.param({"a": 1, "b": 2, "c": 3}, {}, 12, True, {"a": 2, "b": 4, "c": 6}, False, id="expands"),
        pytest.param({"a": 1, "b": 2, "c": 3}, {}, 5, True, {"a": 1, "b": 2, "c": 2}, True, id="the larger gives"),
        pytest.param({"a": 1, "b": 2, "c": 3}, {}, 4, False, {"a": 1, "b": 1, "c": 2}, True, id="one each at least"),
        pytest.param({"a": 1, "b": 2, "c": 3}, {}, 2, False, {"a": 2, "b": 2, "c": 2}, True, id="all on all"),
        pytest.param({"b": 2, "a": 2}, {}, 3, False, {"a": 1, "b": 2}, True, id="equals: the first name gives"),
        pytest.param({"a": 4}, {"i": 4}, 6, False, {"a": 3, "i": 3}, True, id="isolated pools give too"),
        pytest.param({"a": 4}, {"i": 4}, 20, True, {"a": 16, "i": 4}, False, id="isolated pools do not expand"),
        pytest.param({}, {"i": 4}, 20, True, {"i": 4}, False, id="nobody to expand"),
        pytest.param({"a": 4}, {}, 0, False, {"a": 0}, True, id="no CPU at all"),
        pytest.param({}, {}, 0, False, {}, False, id="no pool"),
    ],
)
def test_pools_are_fitted(
    wanted: dict[str, int], fixed: dict[str, int], available: int, expand: bool, sizes: dict[str, int], throttled: bool
) -> None:
    fitted = fit_pools(wanted, fixed, available, expand=expand)
    assert (fitted.pools, fitted.throttled) == (sizes, throttled)


def test_where_pools_are_cut_the_cpus_of_a_core_stay_together() -> None:
    assert fit_pools({"a": 42, "b": 4}, {}, 44, expand=False).pools == {"a": 41, "b": 3}
    assert fit_pools({"a": 42, "b": 4}, {}, 44, expand=False, unit=2).pools == {"a": 40, "b": 4}
    assert fit_pools({"a": 41, "b": 4}, {}, 44, expand=False, unit=2).pools == {"a": 40, "b": 4}
    assert fit_pools({"a": 2, "b": 2}, {}, 2, expand=False, unit=2).pools == {"a": 1, "b": 1}


@given(pools, isolated, st.integers(0, 200), st.booleans(), st.randoms())
def test_the_order_of_the_pools_means_nothing(
    wanted: dict[str, int], fixed: dict[str, int], available: int, expand: bool, random: Random
) -> None:
    shuffled = dict(random.sample(list(wanted.items()), len(wanted)))
    assert fit_pools(shuffled, fixed, available, expand=expand) == fit_pools(wanted, fixed, available, expand=expand)


@given(pools, isolated, st.integers(0, 200), st.booleans())
def test_sizes_sum_up_to_what_there_is_and_no_pool_ends_without_a_cpu(
    wanted: dict[str, int], fixed: dict[str, int], available: int, expand: bool
) -> None:
    fitted = fit_pools(wanted, fixed, available, expand=expand)
    everything = {**wanted, **fixed}
    assert set(fitted.pools) == set(everything)
    total, asked = sum(fitted.pools.values()), sum(everything.values())
    if asked <= available:
        assert total == (available if expand and wanted else asked)
    elif len([size for size in everything.values() if size]) <= available:
        assert total == available
        assert all(fitted.pools[pool] >= 1 for pool in everything if everything[pool])
    assert fitted.throttled == (asked > available)


@given(pools, isolated, st.integers(0, 200))
def test_a_pool_that_is_throttled_never_gets_more_than_it_wants_unless_all_share_everything(
    wanted: dict[str, int], fixed: dict[str, int], available: int
) -> None:
    fitted = fit_pools(wanted, fixed, available, expand=False)
    everything = {**wanted, **fixed}
    if len(everything) <= available:
        assert all(size <= everything[pool] for pool, size in fitted.pools.items())


@pytest.mark.parametrize(
    ("sizes", "required", "overlap"),
    [
        pytest.param({"share": 9, "bmq": 8, "flink": 7}, 4, {"share": 2, "bmq": 2}, id="the larger first"),
        pytest.param({"share": 9, "bmq": 8, "flink": 7}, 8, {"share": 3, "bmq": 3, "flink": 2}, id="all of them"),
        pytest.param({"b": 4, "a": 4}, 1, {"a": 1}, id="equals: the first name"),
        pytest.param({"a": 4}, 0, {}, id="nothing"),
        pytest.param({}, 0, {}, id="nothing of nothing"),
        pytest.param({"a": 1, "b": 1}, 2, {"a": 1, "b": 1}, id="everything"),
    ],
)
def test_cpus_are_borrowed(sizes: dict[str, int], required: int, overlap: dict[str, int]) -> None:
    assert overlap_of(sizes, required) == overlap


def test_more_than_the_pools_have_cannot_be_borrowed() -> None:
    with pytest.raises(Refused, match="the pools have 4") as refusal:
        overlap_of({"a": 4}, 5)
    assert refusal.value.reason == "overlap_exceeds_share"


@given(pools, st.integers(0, 400))
def test_what_is_borrowed_is_what_is_required_and_no_pool_lends_more_than_it_has(
    sizes: dict[str, int], required: int
) -> None:
    if required > sum(sizes.values()):
        return
    overlap = overlap_of(sizes, required)
    assert sum(overlap.values()) == required
    assert all(0 < part <= sizes[pool] for pool, part in overlap.items())
