"""CPUs shared by choice: sizes, the offer as a mean of minutes, and who chooses."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.demand.kept import KeptIdle, keeping
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from shared.contracts.advice import PoolAdvice
from shared.errors import Refused

NEED = Policy(
    "need",
    PolicySettings,
    lambda: None,
    lambda _state, view, _now_s, _settings: (None, Demand(present(view.node_usage_cores), 0)),
    pace="own",
)
"""Tenants need what the node uses, and a smaller need is followed at once."""
BIG = Bounds.of(48, smt=True, shape="shared")
machines = st.builds(
    Bounds.of,
    st.integers(1, 512),
    smt=st.booleans(),
    reserve_cores=st.none() | st.floats(0, 100),
    reserve_pool_cpus=st.integers(0, 64),
    shape=st.just("shared"),
)


def round_of(
    bounds: Bounds,
    need: float,
    now_s: float = 0.0,
    last: Round | None = None,
    *,
    policy: Any = NEED,
    fresh: bool = True,
) -> Round:
    view = View(bounds, node_usage_cores=need, fresh=fresh)
    return decide(view, now_s, ConfiguredPolicy(policy, PolicySettings()), SizingRules(), last)


@pytest.mark.parametrize(
    ("need", "share", "reclaim", "offer"),
    [
        pytest.param(0, 4, 44, 44_000, id="idle"),
        pytest.param(3.2, 8, 40, 40_800, id="no even size, and the offer counts the fraction"),
        pytest.param(11, 15, 33, 33_000, id="an odd size"),
        pytest.param(100, 44, 4, 0, id="overloaded: the pool keeps its floor, and nothing is offered"),
    ],
)
def test_the_sizes_where_cpus_are_shared(need: float, share: int, reclaim: int, offer: int) -> None:
    done = round_of(BIG, need)
    assert (done.sizes.share_cpus, done.sizes.reclaim_cpus, done.sizes.overlap) == (share, reclaim, True)
    assert done.sizes.reclaimed_cpu_millis == offer
    assert done.fields()["overlap"] is True


def test_a_reserve_pool_stays_for_the_system_alone() -> None:
    sizes = round_of(Bounds.of(48, smt=True, reserve_pool_cpus=2, shape="shared"), 10).sizes
    assert (sizes.share_cpus, sizes.reclaim_cpus, sizes.reserve_cpus) == (14, 32, 2)


def test_a_machine_too_small_for_pools_of_their_own_is_as_it_was() -> None:
    for cpus in (1, 2, 3):
        small, chosen = Bounds.of(cpus, smt=False), Bounds.of(cpus, smt=False, shape="shared")
        assert chosen == small


def test_the_pool_follows_the_need_at_once_and_the_offer_its_mean_over_minutes() -> None:
    last = round_of(BIG, 4)
    spike = round_of(BIG, 24, 1.0, last)
    assert (last.sizes.reclaim_cpus, spike.sizes.reclaim_cpus) == (40, 20)
    assert 39_000 < spike.sizes.reclaimed_cpu_millis < 40_000
    assert spike.fields()["oversold_ratio"] == pytest.approx(spike.sizes.reclaimed_cpu_millis / 20_000)
    lasting = round_of(BIG, 24, 301.0, spike)
    part = math.exp(-1)  # of what was offered, after one time constant
    assert lasting.sizes.reclaimed_cpu_millis == pytest.approx(20_000 + part * 20_000, rel=0.01)
    over = round_of(BIG, 4, 302.0, lasting)
    assert over.sizes.reclaim_cpus == 40
    assert over.sizes.reclaimed_cpu_millis < 28_000, "the offer does not jump back either"


def test_the_mean_is_the_same_however_often_it_is_asked() -> None:
    seldom = round_of(BIG, 24, 60.0, round_of(BIG, 4)).sizes.reclaimed_cpu_millis
    often = round_of(BIG, 4)
    for second in range(1, 61):
        often = round_of(BIG, 24, float(second), often)
    assert often.sizes.reclaimed_cpu_millis == pytest.approx(seldom, abs=1)


def test_the_common_pace_holds_for_a_policy_that_does_not_own_it() -> None:
    common = replace(NEED, pace="common")
    last = round_of(BIG, 24, policy=common)
    for now_s, reclaim in [(1.0, 22), (2.0, 22), (31.0, 24)]:
        last = round_of(BIG, 4, now_s, last, policy=common)
        assert last.sizes.reclaim_cpus == reclaim


def test_on_a_view_that_is_not_fresh_tenants_keep_what_they_have_and_nothing_more_is_offered() -> None:
    last = round_of(BIG, 24, 300.0, round_of(BIG, 30))
    stale = round_of(BIG, 1, 1000.0, last, fresh=False)
    assert stale.sizes.reclaim_cpus == last.sizes.reclaim_cpus
    assert stale.sizes.reclaimed_cpu_millis <= last.sizes.reclaimed_cpu_millis
    assert round_of(BIG, 40, 1001.0, stale, fresh=False).sizes.reclaim_cpus == 4


@given(machines, st.lists(st.tuples(st.floats(0, 600), st.floats(0, 1000)), min_size=1, max_size=6))
def test_sizes_fit_side_by_side_and_the_offer_fits_into_the_message(
    bounds: Bounds, needs: list[tuple[float, float]]
) -> None:
    last, now_s = None, 0.0
    for need, passed_s in needs:
        now_s += passed_s
        last = round_of(bounds, need, now_s, last)
        sizes = last.sizes
        PoolAdvice(node="n", boot_id="0" * 8, seq=1, sent_at=datetime(2026, 1, 1, tzinfo=UTC), **last.fields())
        assert sizes.reclaim_cpus >= 1
        if bounds.shares_cpus:
            assert sizes.share_cpus + sizes.reclaim_cpus + sizes.reserve_cpus == bounds.cpus
            wanted = min(need + bounds.reserve_cores, bounds.max_share_cpus - bounds.min_share_cpus)
            assert sizes.share_cpus >= max(wanted - 1e-5, bounds.min_share_cpus), (
                "a hundredth of a milli-core is no CPU"
            )


MARGIN = replace(
    NEED,
    judge=lambda _state, view, _now_s, _settings: (None, with_margin(present(view.node_usage_cores))),
    reserve="own",
)
"""Six cores above what is used now are a margin."""


def with_margin(now_cores: float) -> Demand:
    return Demand(now_cores + 6, 0, now_cores=now_cores)


def test_a_margin_is_kept_from_the_pool_and_not_from_the_offer() -> None:
    sizes = round_of(BIG, 10, policy=MARGIN).sizes
    assert (sizes.reclaim_cpus, sizes.reclaimed_cpu_millis) == (32, 38_000)


def test_an_offer_beside_a_margin_rises_with_its_mean_and_falls_only_by_what_lies_beyond_four_cpus() -> None:
    first = round_of(BIG, 10, policy=MARGIN)
    trough = round_of(BIG, 13.5, 1e6, first, policy=MARGIN)
    assert trough.sizes.reclaimed_cpu_millis == 38_000, "a fall of three cores and a half evicts nobody"
    lower = round_of(BIG, 15, 2e6, trough, policy=MARGIN)
    assert lower.sizes.reclaimed_cpu_millis == 37_000, "33 are left, and four more are held"
    calm = round_of(BIG, 10.5, 3e6, lower, policy=MARGIN)
    assert calm.sizes.reclaimed_cpu_millis == 37_500, "it rises at once with the mean"


@pytest.mark.parametrize(
    ("now_cores", "share"),
    [pytest.param(1.5, 3, id="need and margin"), pytest.param(0.0, 1, id="one CPU in any case")],
)
def test_a_margin_of_its_own_takes_the_place_of_the_floor(now_cores: float, share: int) -> None:
    bounds = Bounds.of(16, smt=True, shape="shared")
    margin = replace(
        MARGIN, judge=lambda _state, _view, _now_s, _settings: (None, Demand(2 * now_cores, 0, now_cores=now_cores))
    )
    assert round_of(bounds, 0, policy=margin).sizes.share_cpus == share
    without = replace(MARGIN, judge=lambda _state, _view, _now_s, _settings: (None, Demand(2 * now_cores, 0)))
    assert round_of(bounds, 0, policy=without).sizes.share_cpus == 4


@pytest.mark.parametrize(
    ("cpus", "policy", "reclaim"),
    [
        pytest.param(48, MARGIN, 2, id="a margin of its own: as Koordinator has it"),
        pytest.param(48, NEED, 4, id="none: as everywhere"),
        pytest.param(8, MARGIN, 2, id="a small machine: as everywhere"),
    ],
)
def test_beside_a_margin_reclaimed_pods_keep_two_cpus(
    cpus: int, policy: Policy[PolicySettings, None], reclaim: int
) -> None:
    sizes = round_of(Bounds.of(cpus, smt=True, shape="shared"), float(cpus), policy=policy).sizes
    assert (sizes.reclaim_cpus, sizes.share_cpus) == (reclaim, cpus - reclaim)


def limited(ratio: float) -> Policy[PolicySettings, None]:
    def judge(_state: None, view: View, _now_s: float, _settings: PolicySettings) -> tuple[None, Demand]:
        return None, replace(with_margin(present(view.node_usage_cores)), most_offered_ratio=ratio)

    return replace(MARGIN, judge=judge)


@pytest.mark.parametrize(
    ("ratio", "now_cores", "offer"),
    [
        pytest.param(1.0, 10, 38_000, id="no limit"),
        pytest.param(0.75, 10, 26_000, id="36 CPUs less what is used"),
        pytest.param(0.7, 10, 23_600, id="33.6 CPUs, a fraction as well"),
        pytest.param(0.75, 40, 0, id="tenants use more than that: nothing is offered"),
        pytest.param(0.0, 0, 0, id="nothing at all"),
    ],
)
def test_offer_and_use_together_are_a_part_of_the_cpus_at_most(ratio: float, now_cores: float, offer: int) -> None:
    sizes, free = (round_of(BIG, now_cores, policy=limited(part)).sizes for part in (ratio, 1.0))
    assert sizes.reclaimed_cpu_millis == offer
    assert sizes.reclaim_cpus == free.reclaim_cpus, "what is not offered is idle, and nobody's"
    assert ("withheld" in sizes.why[0].numbers) == (ratio < 1)


def test_a_limited_offer_is_as_steady_as_another() -> None:
    first = round_of(BIG, 10, policy=limited(0.75))
    trough = round_of(BIG, 13.5, 1e6, first, policy=limited(0.75))
    assert trough.sizes.reclaimed_cpu_millis == first.sizes.reclaimed_cpu_millis == 26_000


@given(st.floats(0, 60), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_part_never_offers_less(need: float, ratio: float, other: float) -> None:
    less, more = (round_of(BIG, need, policy=limited(part)).sizes for part in sorted((ratio, other)))
    assert 0 <= less.reclaimed_cpu_millis <= more.reclaimed_cpu_millis


@pytest.mark.parametrize("ratio", [-0.1, 1.1, math.nan, True, "half"])
def test_a_part_that_is_none_is_refused(ratio: Any) -> None:
    with pytest.raises(Refused, match="most_offered_ratio"):
        round_of(BIG, 10, policy=limited(ratio))


def test_what_pods_keep_idle_is_offered_to_nobody() -> None:
    demand = keeping(with_margin(10), KeptIdle(cores=3.0, of_services=(("shop/web (baseline)", 3.0),)))
    assert (demand.cores, demand.now_cores) == (19, 13)


def test_on_a_view_that_is_not_fresh_a_steady_offer_does_not_rise() -> None:
    last = round_of(BIG, 20, policy=MARGIN)
    stale = round_of(BIG, 1, 1e6, last, policy=MARGIN, fresh=False)
    assert stale.sizes.reclaimed_cpu_millis <= last.sizes.reclaimed_cpu_millis


@given(st.floats(0, 60), st.floats(0, 60))
def test_more_need_never_leaves_more_to_reclaimed_work(need: float, more: float) -> None:
    less, greater = (round_of(BIG, n).sizes for n in (need, need + more))
    assert greater.reclaim_cpus <= less.reclaim_cpus
    assert greater.reclaimed_cpu_millis <= less.reclaimed_cpu_millis


def test_a_shape_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"policy 'need': shape='split'; want one of partitioned, shared"):
        replace(NEED, shape="split")  # type: ignore[arg-type]
