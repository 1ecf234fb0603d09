"""Machines too small for pools of their own, beside a demand that says what of it is a margin."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.model.machine import Bounds, reclaim_floor_cpus
from services.advisor.core.model.view import View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from shared.contracts.advice import PoolAdvice
from sublet.laws.policy import LAWS

TWO, FOUR = Bounds.of(2, smt=True), Bounds.of(4, smt=True)
Margin = Policy[PolicySettings, None]


def margin_of(cores: float, ratio: float = 1.0, *, common: bool = False) -> Margin:
    """A policy that keeps so many cores above what the node uses."""

    def judge(_state: None, view: View, _now_s: float, _settings: PolicySettings) -> tuple[None, Demand]:
        now = present(view.node_usage_cores)
        return None, Demand(now + cores, 0, now_cores=now, most_offered_ratio=ratio, common=common)

    return Policy("margin", PolicySettings, lambda: None, judge, reserve="own", pace="own")


def small_round(
    bounds: Bounds, now_cores: float, policy: Margin, last: Round | None = None, *, now_s: float = 0.0
) -> Round:
    view = View(bounds, node_usage_cores=now_cores)
    return decide(view, now_s, ConfiguredPolicy(policy, PolicySettings()), SizingRules(), last)


@pytest.mark.parametrize(
    ("bounds", "now_cores", "margin_cores", "reclaim", "offer"),
    [
        pytest.param(FOUR, 1.0, 0.7, 2, 3000, id="a CPU of which need and margin take most is the tenants'"),
        pytest.param(FOUR, 1.0, 0.5, 2, 3000, id="half of it"),
        pytest.param(FOUR, 1.0, 0.4, 3, 3000, id="less: the kernel handles the fraction"),
        pytest.param(FOUR, 1.0, 1.0, 2, 3000, id="whole ones"),
        pytest.param(FOUR, 2.0, 9.0, 1, 2000, id="more than there is: a CPU stays"),
        pytest.param(FOUR, 9.0, 1.0, 1, 0, id="overloaded: nothing is offered"),
        pytest.param(FOUR, 0.0, 0.0, 4, 4000, id="idle, and known to stay so"),
        pytest.param(TWO, 0.25, 0.25, 1, 1750, id="2 CPUs"),
        pytest.param(TWO, 0.25, 0.125, 2, 1750, id="2 CPUs, the risk that is taken is small"),
        pytest.param(Bounds.of(1, smt=False), 0.25, 0.25, 1, 750, id="1 CPU"),
    ],
)
def test_a_small_machine_keeps_a_margin_from_the_pool_to_half_a_cpu_and_not_from_the_offer(
    bounds: Bounds, now_cores: float, margin_cores: float, reclaim: int, offer: int
) -> None:
    sizes = small_round(bounds, now_cores, margin_of(margin_cores)).sizes
    assert (sizes.share_cpus, sizes.reclaim_cpus, sizes.overlap) == (bounds.cpus, reclaim, True)
    assert sizes.reclaimed_cpu_millis == offer


def test_a_small_machines_offer_falls_only_by_what_lies_beyond_a_twelfth_of_its_cpus() -> None:
    policy = margin_of(0.5)
    first = small_round(FOUR, 1.0, policy)
    spike = small_round(FOUR, 3.0, policy, first, now_s=2.0)
    assert spike.sizes.reclaim_cpus == 1, "the pool makes way at once"
    assert spike.sizes.reclaimed_cpu_millis == 3000, "and nobody is evicted"
    longer = small_round(FOUR, 1.25, policy, first, now_s=1e6)
    assert longer.sizes.reclaimed_cpu_millis == 3000, "a quarter of a core is held"
    lower = small_round(FOUR, 2.0, policy, longer, now_s=2e6)
    assert lower.sizes.reclaimed_cpu_millis == 2333, "two are left, and a third of one is held"
    calm = small_round(FOUR, 0.5, policy, lower, now_s=3e6)
    assert calm.sizes.reclaimed_cpu_millis == 3500, "it rises at once with the mean"


@pytest.mark.parametrize(
    ("ratio", "now_cores", "offer"),
    [(1.0, 0.5, 1500), (0.75, 0.5, 1000), (0.5, 0.5, 500), (0.5, 1.5, 0), (0.0, 0.0, 0)],
)
def test_a_small_machines_offer_is_limited_as_that_of_shared_cpus(ratio: float, now_cores: float, offer: int) -> None:
    done = small_round(TWO, now_cores, margin_of(0.25, ratio))
    assert done.sizes.reclaimed_cpu_millis == offer
    assert ("withheld" in done.sizes.why[0].numbers) == (ratio < 1)


def test_while_canonical_decides_on_a_small_machine_the_offer_follows_the_need() -> None:
    common = margin_of(0.5, common=True)
    first = small_round(FOUR, 0.2, common)
    # The common reserve is a core.
    assert (first.sizes.reclaim_cpus, first.sizes.reclaimed_cpu_millis) == (3, 2300)
    second = small_round(FOUR, 1.2, common, first, now_s=2.0)
    assert second.sizes.reclaimed_cpu_millis == 1300
    own = small_round(FOUR, 0.2, margin_of(0.5), second, now_s=4.0)
    assert own.sizes.reclaimed_cpu_millis < 2400, "the mean knows what canonical kept, and not this moment alone"


def test_on_a_view_that_is_not_fresh_a_small_machine_promises_no_more() -> None:
    policy = margin_of(0.5)
    last = small_round(FOUR, 2.0, policy)
    stale = replace(View(FOUR, node_usage_cores=0.1), fresh=False)
    done = decide(stale, 1e6, ConfiguredPolicy(policy, PolicySettings()), SizingRules(), last)
    assert done.sizes.reclaimed_cpu_millis == last.sizes.reclaimed_cpu_millis == 2000
    assert done.sizes.reclaim_cpus == last.sizes.reclaim_cpus


@given(
    bounds=st.integers(1, 7).map(lambda cpus: Bounds.of(cpus, smt=True)),
    margin_cores=st.floats(0, 8),
    ratio=st.floats(0, 1),
    needs=st.lists(st.tuples(st.floats(0, 8), st.floats(0.5, 60)), min_size=1, max_size=8),
)
def test_laws_of_a_small_machine_beside_a_margin(
    bounds: Bounds, margin_cores: float, ratio: float, needs: list[tuple[float, float]]
) -> None:
    """The tenants' CPUs lack half of one at most, but for the floor; the offer is limited and fits into the message."""
    last, now_s = None, 0.0
    for now_cores, passed_s in needs:
        now_s += passed_s
        last = small_round(bounds, now_cores, margin_of(margin_cores, ratio), last, now_s=now_s)
        sizes, floor = last.sizes, reclaim_floor_cpus(bounds.cpus)
        # A hundredth of a milli-core is no CPU.
        assert sizes.reclaim_cpus == floor or bounds.cpus - sizes.reclaim_cpus >= now_cores + margin_cores - 0.5 - 1e-5
        assert floor <= sizes.reclaim_cpus <= bounds.cpus
        assert 0 <= sizes.reclaimed_cpu_millis <= bounds.cpus * 1000 * ratio + 1
        PoolAdvice(node="n", boot_id="0" * 8, seq=1, sent_at=datetime(2026, 1, 1, tzinfo=UTC), **last.fields())


def test_a_policy_with_a_margin_holds_the_law_of_the_machine() -> None:
    def judge(_state: None, view: View, _now_s: float, _settings: PolicySettings) -> tuple[None, Demand]:
        return None, Demand(1.25, view.memory.total_bytes or 0, now_cores=0.5)

    LAWS["the advice stays within the machine"](replace(margin_of(0.0), judge=judge))
