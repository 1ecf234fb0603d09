"""CPU headroom of regions, of a used pool and of a node: the rules one by one, and laws."""

import math
from random import Random
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.offer.headroom import (
    GroupUse,
    HeadroomRules,
    NumaPool,
    ReclaimedUse,
    Rounding,
    capacity_millis,
    node_headroom_millis,
    numa_pools,
    supply_cores,
)
from services.advisor.core.offer.utilization import UtilRules, util_capacity_cores
from services.advisor.whatif.cpu.node_headroom import NodeHeadroomQuestion, node_headroom
from shared.core.cpus.cpuset import CpuSet
from sublet.reference.region_headroom import (
    Performance,
    RegionHeadroomQuestion,
    RegionReserves,
    region_headroom,
    region_headroom_cores,
)

cores = st.floats(0, 1024)
ratios = st.floats(0, 2)
groups = st.builds(GroupUse, cores, st.none() | cores)
rounding = st.sampled_from(["milli", "core"])


@pytest.mark.parametrize(
    ("reserves", "estimates", "performance", "want"),
    [
        pytest.param((90, 10, 0), [0], None, 80, id="nothing runs"),
        pytest.param((44, 4, 4), [1.5, 2.5], None, 40, id="the reserve for reclaim comes back"),
        pytest.param((8, 4, 2), [9], None, 0, id="never negative"),
        pytest.param((24, 0, 2), [6], Performance(75, 50, 100), 10, id="half of it at half the score"),
        pytest.param((24, 0, 2), [6], Performance(100, 0, 100), 20, id="all of it at the best"),
        pytest.param((24, 0, 2), [6], Performance(-5, 0, 100), 0, id="nothing below the worst"),
    ],
)
def test_a_region_lends_what_lies_between_its_bound_and_its_need(
    reserves: tuple[int, int, int], estimates: list[float], performance: Performance | None, want: int
) -> None:
    assert region_headroom_cores(RegionReserves(*reserves), estimates, performance) == pytest.approx(want)


@pytest.mark.parametrize(
    ("policy", "given", "want"),
    [
        pytest.param("numa_dedicated", {"performance_score": 25, "score_min": 0, "score_max": 100}, 5, id="scored"),
        pytest.param("numa_dedicated", {"performance_score": 25}, 20, id="bounds of the score unknown"),
        pytest.param("numa_dedicated", {}, 20, id="not scored"),
        pytest.param("canonical", {"performance_score": 25, "score_min": 0, "score_max": 100}, 20, id="canonical"),
    ],
)
def test_only_a_dedicated_region_is_shortened_by_its_score(
    policy: Literal["canonical", "numa_dedicated"], given: dict[str, int], want: int
) -> None:
    question = RegionHeadroomQuestion(
        policy=policy, region_type="dedicated", upper_cores=24.0, reserved_for_allocate_cores=4.0,
        reserved_for_reclaim_cores=2.0, estimates_cores=[2.0], **{key: float(value) for key, value in given.items()},
    )  # fmt: skip
    assert region_headroom(question).headroom_cores == pytest.approx(want)


@given(cores, cores, cores, st.lists(cores, max_size=8), cores)
def test_a_region_that_needs_more_never_lends_more(
    upper: float, allocate: float, reclaim: float, estimates: list[float], more: float
) -> None:
    reserves = RegionReserves(upper, allocate, reclaim)
    before = region_headroom_cores(reserves, estimates)
    assert region_headroom_cores(reserves, [*estimates, more]) <= before + 1e-9
    assert region_headroom_cores(reserves, estimates[::-1]) == before
    assert before <= max(0.0, upper - allocate + reclaim) + 1e-9


@pytest.mark.parametrize(
    ("supply", "usage", "last", "rules", "most", "want"),
    [
        pytest.param(10, 0, 10, UtilRules(), 0, 12, id="unused: up to the oversold multiple"),
        pytest.param(40, 12, 42, UtilRules(), 0, 48, id="by the distance to the target"),
        pytest.param(40, 22, 42, UtilRules(), 0, 44, id="a small distance, a small step"),
        pytest.param(40, 24, 44, UtilRules(), 0, 44, id="at the target it stays"),
        pytest.param(40, 30, 44, UtilRules(), 0, 44, id="above the target it stays"),
        pytest.param(40, 38, 44, UtilRules(), 0, 44, id="no maximum"),
        pytest.param(40, 34, 44, UtilRules(max_ratio=0.8), 0, 42, id="above the maximum it shrinks"),
        pytest.param(40, 38, 44, UtilRules(max_ratio=0.8), 48, 40, id="never below the supply"),
        pytest.param(40, 0, 44, UtilRules(), 45, 45, id="the bound"),
        pytest.param(40, 0, 44, UtilRules(), 30, 30, id="the bound below the supply"),
        pytest.param(0, 5, 44, UtilRules(), 0, 0, id="no supply"),
    ],
)
def test_capacity_follows_the_use_of_the_pool(
    supply: int, usage: int, last: int, rules: UtilRules, most: int, want: int
) -> None:
    assert util_capacity_cores(supply, usage, last, rules, most) == pytest.approx(want)


@given(cores, cores, cores, st.builds(UtilRules, ratios, ratios, st.floats(1, 3)), cores)
def test_capacity_lies_between_the_supply_and_its_bounds(
    supply: float, usage: float, last: float, rules: UtilRules, most: float
) -> None:
    found = util_capacity_cores(supply, usage, last, rules, most)
    assert 0 <= found <= supply * rules.max_oversold_ratio + 1e-9
    if most > 0:
        assert found <= most
    else:
        assert found >= supply - 1e-9


@pytest.mark.parametrize(
    ("pool", "used", "group", "want"),
    [
        pytest.param(10, 0, GroupUse(), 10, id="unused"),
        pytest.param(10, 3, GroupUse(3), 10, id="used by reclaimed pods alone"),
        pytest.param(10, 3, GroupUse(1), 8, id="tenants use it too"),
        pytest.param(10, 12, GroupUse(2), 2, id="more used than there is"),
        pytest.param(10, 0, GroupUse(0, 4), 4, id="a quota"),
        pytest.param(10, 0, GroupUse(0, 40), 10, id="a quota that binds nothing"),
    ],
)
def test_the_supply_is_what_is_free_and_what_reclaimed_pods_use(
    pool: int, used: int, group: GroupUse, want: int
) -> None:
    assert supply_cores(pool, used, group) == want


TWO = {0: NumaPool(22, 0.1, 24), 1: NumaPool(22, 0.0, 24)}


@pytest.mark.parametrize(
    ("pools", "use", "bound", "rules", "want"),
    [
        pytest.param(TWO, ReclaimedUse(), (), HeadroomRules(), {0: 21_950, 1: 21_950}, id="milli: nothing lost"),
        pytest.param(TWO, ReclaimedUse(), (), HeadroomRules(rounding="core"), {0: 21_000, 1: 21_000}, id="cores lose"),
        pytest.param(TWO, ReclaimedUse(), (0,), HeadroomRules(), {0: 21_900, 1: 22_000}, id="measured by itself"),
        pytest.param(TWO, ReclaimedUse(), (0,), HeadroomRules(rounding="core"), {0: 22_000, 1: 22_000}, id="bound: up"),
        pytest.param(
            TWO, ReclaimedUse(GroupUse(0, 9), {0: GroupUse(0, 3)}), (0,), HeadroomRules(), {0: 3000, 1: 9000},
            id="each by its own quota",
        ),
        pytest.param(
            {0: NumaPool(10, 0, 24, 10), 1: NumaPool(10, 0, 24, 10)}, ReclaimedUse(), (1,),
            HeadroomRules(UtilRules(), rounding="core"), {0: 12_000, 1: 12_000}, id="by use, oversold",
        ),
        pytest.param(
            {0: NumaPool(23, 0, 24, 30)}, ReclaimedUse(), (), HeadroomRules(UtilRules()), {0: 24_000},
            id="at most the CPUs there",
        ),
        pytest.param(
            {0: NumaPool(23, 0, 24, 30)}, ReclaimedUse(), (), HeadroomRules(UtilRules(), max_capacity_ratio=0),
            {0: 27_600}, id="no such bound",
        ),
        pytest.param(
            {0: NumaPool(5, 0.1, 24)}, ReclaimedUse(bound={0: GroupUse(0.25)}), (0,),
            HeadroomRules(UtilRules(), rounding="core"),
            {0: 5150}, id="bound and by use: milli",
        ),
        pytest.param({0: NumaPool(0, 0, 4), 1: NumaPool(3, 0, 4)}, ReclaimedUse(), (), HeadroomRules(), {1: 3000},
                     id="a node without a CPU of the pool is not there"),
        pytest.param({}, ReclaimedUse(), (), HeadroomRules(), {}, id="no pool"),
    ],
)  # fmt: skip
def test_headroom_by_numa_node(
    pools: dict[int, NumaPool], use: ReclaimedUse, bound: tuple[int, ...], rules: HeadroomRules, want: dict[int, int]
) -> None:
    assert node_headroom_millis(pools, use, bound, rules) == want


some_pools = st.dictionaries(
    st.integers(0, 7),
    st.integers(1, 64).flatmap(
        lambda cpus: st.integers(0, cpus).flatmap(
            lambda pool: st.builds(NumaPool, st.just(pool), st.floats(0, pool), st.just(cpus), cores)
        )
    ),
    max_size=6,
)
uses = st.builds(ReclaimedUse, groups, st.dictionaries(st.integers(0, 7), groups, max_size=4))


@given(some_pools, uses, st.sets(st.integers(0, 7)), st.booleans(), rounding, st.randoms())
def test_headroom_does_not_depend_on_any_order(
    pools: dict[int, NumaPool], use: ReclaimedUse, bound: set[int], by_use: bool, how: Rounding, rng: Random
) -> None:
    rules = HeadroomRules(UtilRules() if by_use else None, rounding=how)
    shuffled = list(pools.items())
    rng.shuffle(shuffled)
    found = node_headroom_millis(pools, use, bound, rules)
    again = node_headroom_millis(dict(shuffled), use, sorted(bound, reverse=True), rules)
    assert (found, list(found)) == (again, sorted(again))
    assert set(found) == {numa for numa, pool in pools.items() if pool.pool_cpus}
    assert all(millis >= 0 for millis in found.values())


@given(some_pools, st.sets(st.integers(0, 7)), rounding)
def test_what_nobody_uses_is_never_more_than_the_pool(
    pools: dict[int, NumaPool], bound: set[int], how: Rounding
) -> None:
    """Tenants use CPUs of the pool, reclaimed pods none."""
    found = node_headroom_millis(pools, ReclaimedUse(), bound, HeadroomRules(rounding=how))
    for numa in bound & set(found):
        assert found[numa] <= 1000 * pools[numa].pool_cpus
    assert sum(found.values()) <= 1000 * sum(pool.pool_cpus for pool in pools.values())


@given(some_pools, uses, st.sets(st.integers(0, 7)))
def test_by_use_a_node_never_offers_more_than_its_cpus(
    pools: dict[int, NumaPool], use: ReclaimedUse, bound: set[int]
) -> None:
    found = node_headroom_millis(pools, use, bound, HeadroomRules(UtilRules()))
    assert sum(found.values()) <= 1000 * sum(pools[numa].cpus for numa in found)


@given(some_pools, st.sets(st.integers(0, 7)))
def test_milli_cores_lose_less_than_one_for_each_numa_node(pools: dict[int, NumaPool], bound: set[int]) -> None:
    found = node_headroom_millis(pools, ReclaimedUse(), bound, HeadroomRules())
    exact = math.fsum(1000 * (pool.pool_cpus - pool.used_cores) for pool in pools.values())
    assert exact - len(found) - 1e-3 <= sum(found.values()) <= exact + 1e-3


def test_capacity_is_what_the_pool_holds_apart_from_what_is_offered() -> None:
    pools = {1: NumaPool(10, 4, 24), 0: NumaPool(10, 0, 24), 2: NumaPool(0, 0, 24)}
    offered = node_headroom_millis(pools, ReclaimedUse(), (0, 1), HeadroomRules())
    assert offered == {0: 10_000, 1: 6000}
    assert capacity_millis(pools, offered) == {0: 10_000, 1: 10_000}
    assert capacity_millis(pools, {0: 12_000, 1: 6000}) == {0: 12_000, 1: 10_000}


def test_the_pool_by_numa_node() -> None:
    numas = {0: CpuSet.parse("0-3"), 1: CpuSet.parse("4-7")}
    pools = numa_pools(CpuSet.parse("2-4"), numas, {1: 1.0, 2: 0.5, 4: 0.25}, {1: 1500})
    assert pools == {0: NumaPool(2, 0.5, 4, 0.0), 1: NumaPool(1, 0.25, 4, 1.5)}


def asked(**inputs: Any) -> NodeHeadroomQuestion:
    uniform = {"sockets": 2, "numa_per_socket": 1, "cores_per_numa": 12, "threads": 2, "numbering": "split"}
    base = {
        "topology": {"uniform": uniform}, "enable_reclaim": True, "util_based": False, "reclaim_pool": "1-10,13-22",
        "cpu_usage": [], "reclaim_cgroup": {"usage_cores": 0, "quota_us": -1, "period_us": 100_000},
        "last_reported_cores": {}, "numas_bound_by_pods": [],
    }  # fmt: skip
    return NodeHeadroomQuestion.model_validate(base | inputs)


def test_without_reclaim_every_node_offers_nothing() -> None:
    answer = node_headroom(asked(enable_reclaim=False))
    assert (answer.total_millicpu, answer.per_numa_millicpu) == (0, {0: 0, 1: 0})


def test_use_outside_the_pool_takes_nothing_from_it() -> None:
    answer = node_headroom(asked(cpu_usage=[{"cpus": "0-1,11,24-47", "ratio": 1}]))
    assert (answer.total_millicpu, answer.per_numa_millicpu) == (19_000, {0: 9500, 1: 9500})


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        pytest.param({"reclaim_pool": "0-48"}, "CPUs 48 are not in the topology", id="a CPU too many"),
        pytest.param(
            {"cpu_usage": [{"cpus": "0-3", "ratio": 0}, {"cpus": "3", "ratio": 1}]}, "CPU 3 is listed twice", id="twice"
        ),
    ],
)
def test_a_machine_that_cannot_be_is_refused(inputs: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        asked(**inputs)
