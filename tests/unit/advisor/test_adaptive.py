"""The policy `adaptive`: who decides when, what always counts, and what a node learns of its own tenants."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.model.figures import Figures, NodeMemory, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, Signs, View
from services.advisor.core.policy import Demand
from services.advisor.core.prediction.histogram import CPU_CORES, Histogram
from services.advisor.core.prediction.margin import Expectation, Forecast, LearnedMargin, staying_ratio
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.policies import canonical
from services.advisor.policies.adaptive import POLICY, AdaptiveSettings
from services.advisor.settings import choose
from shared.contracts.pod import QosClass
from shared.errors import BadConfig

GIB = 1 << 30
BIG = Bounds.of(48, smt=True)
SETTINGS = AdaptiveSettings()
ROUND_S = 2.0
HOUR = round(3600 / ROUND_S)
needs = st.lists(st.floats(0, 40), min_size=1, max_size=40)


def container(usage: float | None = None, request: float = 2.0, qos: QosClass = "shared_cores") -> ContainerView:
    return ContainerView("default/a", f"uid-{qos}", "main", qos, request, GIB, Figures(usage), Resident(GIB))


def view(*containers: ContainerView, bounds: Bounds = BIG, **over: Any) -> View:
    return View(bounds, containers, NodeMemory(total_bytes=100 * GIB), region_reserve_cores=4.0, **over)


def lived(
    needs: Sequence[float],
    state: LearnedMargin | None = None,
    start_s: float = 0.0,
    bounds: Bounds = BIG,
    settings: AdaptiveSettings = SETTINGS,
) -> tuple[LearnedMargin, Demand]:
    """State and demand after one round for each need of the one tenant."""
    state = POLICY.start() if state is None else state
    for number, need in enumerate(needs, 1):
        seen = view(container(need), bounds=bounds)
        state, demand = POLICY.judge(state, seen, start_s + ROUND_S * number, settings)
    return state, demand


def noise(rounds: int, base: float, height: float, seed: int = 1) -> list[float]:
    """A need around a base that springs up by up to the height every tenth round or so."""
    chance = Random(seed)
    return [base + (height * chance.random() if chance.random() < 0.1 else 0.0) for _ in range(rounds)]


def margin_of(state: LearnedMargin, settings: AdaptiveSettings = SETTINGS) -> float:
    return forecast_of(state, settings).margin_cores


def forecast_of(state: LearnedMargin, settings: AdaptiveSettings = SETTINGS) -> Forecast:
    return state.forecast(48, settings.rules)


def misses(state: LearnedMargin, needs: Sequence[float], start_s: float) -> list[bool]:
    """Whether each need exceeded what was kept for it the round before."""
    missed, kept = [], forecast_of(state).bound_cores
    for number, need in enumerate(needs, 1):
        missed.append(need > kept)
        state, _ = lived([need], state, start_s + ROUND_S * (number - 1))
        kept = forecast_of(state).bound_cores
    return missed


WARM, _ = lived(noise(HOUR, 10.0, 4.0))
"""An hour of a restless tenant."""


def test_canonical_decides_while_the_node_is_cold_with_the_common_reserve_and_pace() -> None:
    state, cold = lived([5.0] * 300)
    _, by_rule = canonical.judge(None, view(container(5.0)), 0.0, canonical.CanonicalSettings())
    assert (cold.cores, cold.common) == (by_rule.cores, True)
    assert cold.why[0].rule == "adaptive: tenants observed for less than 600 s; canonical decides"
    _, warm = lived([5.0] * 2, state, 600.0)
    assert not warm.common
    assert warm.why[0].rule == "adaptive: what is expected + learned margin, at least what is used now"


def test_what_a_cold_node_has_learned_counts_where_it_is_more_than_canonical() -> None:
    state, cold = lived([*noise(250, 10.0, 16.0), 10.0])
    assert cold.common
    known = forecast_of(state)
    # By the part of the cold start that was observed; the common reserve of 4 is added to it.
    above = known.learned_bound_cores - known.need_cores
    assert cold.cores + 4.0 == pytest.approx(known.need_cores + above * state.learned_s / SETTINGS.cold_start_s)
    assert cold.cores > 1.25 * 10.0
    assert known.learned_bound_cores < known.bound_cores, "what is guessed does not count beside canonical's reserve"


def test_what_tenants_used_while_they_started_is_not_yet_what_is_usual_for_them() -> None:
    state, cold = lived([*[8.0] * 5, *[0.1] * 10])
    assert state.last.usual_cores > 7.0
    _, by_rule = canonical.judge(None, view(container(0.1)), 0.0, canonical.CanonicalSettings())
    assert cold.cores == by_rule.cores, "half a minute of ten says little beside canonical's reserve"


def test_without_figures_canonical_decides_and_nothing_is_learned() -> None:
    for seen in (view(container(None)), view(container(5.0)).blind()):
        state, demand = POLICY.judge(WARM, seen, 3602.0, SETTINGS)
        assert state == WARM
        assert demand.common
        assert demand.cores >= 2.0, "what it asked for"
        assert "no figures" in demand.why[0].rule


@pytest.mark.parametrize(("factor", "cores"), [(1.0, 6.25), (4.0, 6.25), (6.0, 11.375), (8.0, 16.5)])
def test_more_caution_than_usual_counts_for_young_tenants_as_well(factor: float, cores: float) -> None:
    """Canonical's 1.25 x 5 and its reserve of 4, once and a half and twice; the reserve itself is added by sizing."""
    _, cold = lived([5.0] * 20, settings=AdaptiveSettings(margin_factor=factor))
    assert cold.common
    assert cold.cores == pytest.approx(cores)


def test_a_node_without_tenants_needs_nothing_and_that_is_learned() -> None:
    state = replace(POLICY.start(), learned_s=SETTINGS.cold_start_s)
    for number in range(HOUR):
        state, demand = POLICY.judge(state, view(tenants_usage_cores=0.0), ROUND_S * number, SETTINGS)
    assert not demand.common
    assert demand.cores == pytest.approx(SETTINGS.min_margin_cores, abs=0.05)
    assert demand.why[0].rule.startswith("adaptive: no shared tenant")
    _, blind = POLICY.judge(state, view().blind(), ROUND_S * HOUR, SETTINGS)
    assert "no figures" in blind.why[0].rule


def test_the_first_minutes_of_tenants_are_canonicals_however_long_the_node_was_empty() -> None:
    state = POLICY.start()
    for number in range(HOUR):
        state, demand = POLICY.judge(state, view(tenants_usage_cores=0.0), ROUND_S * number, SETTINGS)
    assert demand.common
    state, first = lived([1.0] * 298, state, 3600.0)
    assert (first.cores, first.common) == (1.25, True)
    assert not lived([1.0] * 3, state, 4196.0)[1].common


def test_a_node_that_never_rises_keeps_the_least_margin_within_the_hour() -> None:
    state, demand = lived([5.0] * HOUR)
    assert margin_of(state) == SETTINGS.min_margin_cores
    assert demand.cores == pytest.approx(6.0, rel=0.05), "what is usual is known to 5 %"


@pytest.mark.parametrize(("factor", "cores"), [(4.0, 1.0), (1.0, 1.0), (0.5, 0.5), (0.0, 0.0)])
def test_a_factor_below_one_takes_its_part_of_the_least_margin_as_well(factor: float, cores: float) -> None:
    settings = AdaptiveSettings(margin_factor=factor)
    state, _ = lived([5.0] * HOUR, settings=settings)
    assert margin_of(state, settings) == pytest.approx(cores)


def test_a_restless_node_keeps_more_than_a_calm_one() -> None:
    calm, _ = lived(noise(HOUR, 10.0, 0.5))
    assert margin_of(WARM) > 3 * margin_of(calm)


def test_twice_the_node_has_twice_the_demand() -> None:
    past = noise(HOUR, 10.0, 4.0)
    _, one = lived(past)
    _, two = lived([2 * need for need in past], bounds=Bounds.of(96, smt=True))
    assert two.cores == pytest.approx(2 * one.cores, rel=0.06), "buckets are 5 % wide"


def test_tenants_that_are_cut_to_their_pool_get_more_each_round() -> None:
    state, size, sizes = WARM, 20, []
    for number in range(5):
        seen = view(container(float(size)), size_cpus=size)
        state, demand = POLICY.judge(state, seen, 3600.0 + ROUND_S * (number + 1), SETTINGS)
        sizes.append(demand.cores)
        size = round(demand.cores)
    assert sizes == sorted(sizes)
    assert all(later >= 1.2 * sooner for sooner, later in pairwise(sizes) if later < BIG.cpus)


def test_tasks_that_wait_in_the_pool_count_as_need() -> None:
    state, waiting = POLICY.judge(
        WARM, view(container(10.0), tenants_usage_cores=10.0, signs=Signs(waiting_tasks=8.0)), 3602.0, SETTINGS
    )
    _, calm = POLICY.judge(WARM, view(container(10.0), tenants_usage_cores=10.0), 3602.0, SETTINGS)
    assert state.last.need_cores == 18.0
    assert waiting.cores > calm.cores


@pytest.mark.parametrize(
    ("used", "waiting", "size", "need"),
    [
        pytest.param(10.0, 0.0, 20, 10.0, id="room is left"),
        pytest.param(10.0, 0.0, 10, 12.5, id="the pool is full: what nobody counts"),
        pytest.param(10.0, 1.0, 10, 12.5, id="less waits than that"),
        pytest.param(10.0, 8.0, 10, 18.0, id="more waits, and it is counted once"),
        pytest.param(10.0, 8.0, 16, 18.0, id="tasks wait in a pool that is not full, as at a process of the host"),
        pytest.param(9.7, 0.0, 10, 12.125, id="full from 97 percent on"),
        pytest.param(9.6, 0.0, 10, 9.6, id="and not below"),
    ],
)
def test_use_of_a_full_pool_counts_more_and_what_waits_counts_once(
    used: float, waiting: float, size: int, need: float
) -> None:
    seen = view(container(used), tenants_usage_cores=used, size_cpus=size, signs=Signs(waiting_tasks=waiting))
    state, _ = POLICY.judge(WARM, seen, 3602.0, SETTINGS)
    assert state.last.need_cores == pytest.approx(need)


def test_noise_of_three_times_the_height_is_learned_within_a_half_life() -> None:
    louder = noise(round(SETTINGS.rise_half_life_s / ROUND_S), 10.0, 12.0, seed=2)
    missed = misses(WARM, louder, 3600.0)
    late = missed[len(missed) // 2 :]
    assert sum(late) / len(late) <= 0.001


@pytest.mark.parametrize(("round_s", "half_life_s"), [(1.0, 10_000.0), (2.0, 86_400.0)])
def test_new_rises_are_learned_however_many_rounds_were_calm(round_s: float, half_life_s: float) -> None:
    """The weight of the past grows to half-life / round / ln 2: one round is less than 1e-4 of it."""
    rules = AdaptiveSettings(rise_half_life_s=half_life_s).rules.learning
    calm = Histogram({0: half_life_s / round_s / math.log(2)})
    state, now_s = replace(WARM, rises=calm, last=Expectation()), 0.0
    for need in [10.0 if number % 5 else 25.0 for number in range(1200)]:
        now_s += round_s
        state = state.observe(need, now_s, BIG.cpus, rules)
    assert max(CPU_CORES.ends[bucket] for bucket in state.rises.weights) > 10
    assert margin_of(state) > 10


def test_a_single_jump_of_a_calm_node_does_not_keep_the_whole_machine() -> None:
    calm, _ = lived([5.0] * HOUR)
    jumped, _ = lived([15.0, 5.0, 5.0], calm, 3600.0)
    assert margin_of(jumped) < 5, "four times the jump would be 40"
    often, _ = lived(([15.0] + [5.0] * 40) * 40, jumped, 3606.0)
    assert margin_of(often) > 5 * margin_of(jumped), "what comes back is believed"


@pytest.mark.parametrize("percentile", [99.5, 99.9])
def test_a_single_miss_does_not_widen_the_margin_where_few_are_claimed(percentile: float) -> None:
    settings = AdaptiveSettings(rise_percentile=percentile)
    state, _ = lived([5.0] * HOUR, settings=settings)
    state, _ = lived([9.0, 5.0], state, 3600.0, settings=settings)
    assert state.missed_ratio > 0
    assert state.last.widened == 1.0


def test_a_queue_of_any_length_counts_as_the_machine() -> None:
    state, demand = lived([1e9, 5.0, 1e9], WARM, 3600.0)
    assert state.exceeded < 10 * BIG.cpus**2 + WARM.exceeded
    assert demand.cores >= BIG.cpus


def test_a_spike_that_is_over_is_not_kept() -> None:
    """Seen often, a short spike leads to expect that it ends; the margin, not the spike, answers the next one."""
    spikes = [5.0 if number % 50 else 15.0 for number in range(HOUR)]
    state, _ = lived(spikes)
    state, _ = lived([15.0], state, 7200.0)
    assert staying_ratio(state.stayed, state.exceeded, 5.0) < 0.1
    assert state.last.expected_cores < 6.0
    narrow = forecast_of(state)._replace(margin_cores=1.0)
    assert narrow.bound_cores == 15.0, "never less than what is used now"


def test_a_level_that_stays_is_expected_to_stay() -> None:
    state, _ = lived([5.0] * HOUR + [15.0] * 100)
    assert state.last.expected_cores == pytest.approx(15.0, rel=0.05)


@given(before=needs, now=st.floats(0, 60), cpus=st.integers(1, 128))
def test_tenants_never_get_less_than_they_use_nor_more_than_the_machine(
    before: list[float], now: float, cpus: int
) -> None:
    bounds = Bounds.of(cpus, smt=True)
    state, _ = lived(before, bounds=bounds)
    _, demand = lived([now], replace(state, learned_s=1e6), 1000.0, bounds)
    assert now <= demand.cores
    if not demand.common:
        assert demand.cores <= max(now, cpus)


@given(before=needs, now=st.floats(0, 40), more=st.floats(0, 20))
def test_more_need_never_gives_tenants_less(before: list[float], now: float, more: float) -> None:
    state = replace(lived(before)[0], learned_s=1e6)
    _, less = lived([now], state, 1000.0)
    _, larger = lived([now + more], state, 1000.0)
    assert larger.cores >= less.cores - 1e-9


def test_a_small_rise_after_a_large_one_does_not_narrow_the_margin_of_its_own_round() -> None:
    """It makes rises smaller on average: that counts from the next round on."""
    needs = ([5.0] * 40 + [8.0]) * 30 + [5.0] * 600
    past, _ = lived(needs)
    later_s = ROUND_S * len(needs)
    _, calm = lived([5.0], past, later_s)
    _, risen = lived([5.5], past, later_s)
    assert risen.cores >= calm.cores
    assert margin_of(lived([5.5, 5.5], past, later_s)[0]) < margin_of(past)


@given(needs, st.integers(0, 39))
def test_the_state_is_bounded_by_its_buckets(before: list[float], gap: int) -> None:
    state, _ = lived(before * 10, start_s=gap)
    assert len(state.rises.weights) <= 160
    assert len(state.usual.histogram.weights) <= 160


def test_a_silence_is_no_rise() -> None:
    state, _ = lived([40.0], WARM, 3600.0 + 601.0)
    assert state.rises == WARM.rises
    assert state.learned_s == WARM.learned_s
    state, _ = lived([40.0], WARM, 10.0)
    assert state.rises == WARM.rises, "a clock that went back"


def test_misses_far_above_the_claim_widen_the_margin_and_then_canonical_decides() -> None:
    missing = replace(WARM, missed_ratio=0.2)
    widened, _ = lived([10.0], missing, 3600.0)
    plain, _ = lived([10.0], WARM, 3600.0)
    assert widened.last.widened == pytest.approx(2.0), "0.2 is twice what is tolerated of a claim of 0.05"
    assert margin_of(widened) > 1.5 * margin_of(plain), "the guessed part stays"
    _, demand = lived([10.0], replace(WARM, missed_ratio=0.3), 3600.0)
    assert demand.common
    assert demand.cores + 4.0 >= forecast_of(lived([10.0], replace(WARM, missed_ratio=0.3), 3600.0)[0]).bound_cores
    assert "too many needs rose above the forecast" in demand.why[0].rule


@pytest.mark.parametrize("height", [0.0, 1.0, 4.0, 8.0])
def test_the_need_rises_above_the_forecast_as_seldom_as_claimed(height: float) -> None:
    state, start_s, missed = WARM, 3600.0, 0
    state, _ = lived(noise(2 * HOUR, 10.0, height, seed=3), state, start_s)
    after = noise(2 * HOUR, 10.0, height, seed=4)
    for number, need in enumerate(after):
        last = state.last
        missed += need - last.expected_cores > last.rise_cores
        state, _ = lived([need], state, 3 * 3600.0 + ROUND_S * number)
    assert missed / len(after) <= SETTINGS.rules.learning.claimed_misses + 0.01


@pytest.mark.parametrize(("cpus", "margin_cores"), [(2, 0.25), (4, 0.5), (8, 1.0), (16, 1.0)])
def test_a_small_node_keeps_its_margin_and_no_quarter_of_the_machine(cpus: int, margin_cores: float) -> None:
    bounds = Bounds.of(cpus, smt=False)
    last: Round | None = None
    for number in range(HOUR):
        seen = view(container(0.25), bounds=bounds, tenants_usage_cores=0.25)
        chosen = ConfiguredPolicy(POLICY, SETTINGS)
        last = decide(seen, ROUND_S * number, chosen, SizingRules(), last)
    sizes = present(last).sizes
    assert sizes.why[0].numbers["reserve_cores"] == 0
    assert present(last).demand.cores == pytest.approx(0.25 + margin_cores, abs=0.05)


def test_a_dedicated_pod_counts_its_request_and_an_unmeasured_one_as_well() -> None:
    own = container(None, request=6.0, qos="dedicated_cores")
    _, demand = POLICY.judge(WARM, view(container(10.0), own), 3602.0, SETTINGS)
    _, alone = POLICY.judge(WARM, view(container(10.0)), 3602.0, SETTINGS)
    assert demand.cores == pytest.approx(alone.cores + 6.0)


def test_it_says_what_the_demand_is_made_of() -> None:
    state, demand = lived([10.0], WARM, 3600.0)
    numbers, last = demand.why[0].numbers, forecast_of(state)
    assert set(numbers) >= {"now_cores", "usual_cores", "expected_cores", "rise_cores", "margin_cores", "known_ratio"}
    assert numbers["expected_cores"] == pytest.approx(last.expected_cores, abs=1e-5)
    assert demand.cores == pytest.approx(last.expected_cores + last.margin_cores)


def test_it_says_what_the_forecast_claims_for_each_span_and_what_came_true() -> None:
    _, demand = lived([10.0], WARM, 3600.0)
    reason = demand.why[1]
    assert reason.rule == "adaptive: the need rises by no more within"
    times = ("round", "10 s", "60 s", "300 s")
    assert set(reason.numbers) == {f"{time} {name}" for time in times for name in ("cores", "claimed", "covered")}
    assert reason.numbers["10 s claimed"] == pytest.approx(0.95, abs=0.02)
    assert reason.numbers["10 s covered"] == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("value", [-1, 101, "nan", "much"])
def test_a_factor_out_of_bounds_is_refused_by_name(value: Any) -> None:
    with pytest.raises(BadConfig, match="margin_factor"):
        choose({"policy": "adaptive", "policies": {"adaptive": {"margin_factor": value}}})


def test_an_empty_histogram_has_no_percentile() -> None:
    assert Histogram().bucket_at(95.0) is None
    state, _ = lived([5.0])
    assert state.last.rise_cores == 0.0
