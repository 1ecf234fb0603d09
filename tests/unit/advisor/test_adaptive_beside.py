"""The policy `adaptive` where CPUs are shared: which bound holds, for whom canonical decides, and what is a margin."""

import math
from dataclasses import replace
from random import Random

import pytest

from services.advisor.core.model.figures import Figures, NodeMemory, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.policy import Demand
from services.advisor.core.prediction.margin import LearnedMargin
from services.advisor.policies.adaptive import POLICY, YOUNG_FACTORS, AdaptiveSettings

GIB = 1 << 30
SETTINGS = AdaptiveSettings()
ROUND_S = 2.0
HOUR = round(3600 / ROUND_S)
BESIDE = Bounds.of(48, smt=True, shape="shared")
"""Tenants may run on every CPU."""
SMALL = Bounds.of(6, smt=True)
"""They may as well, for there are too few for pools of their own."""


def lived(
    needs: list[float],
    state: LearnedMargin | None = None,
    start_s: float = 0.0,
    bounds: Bounds = BESIDE,
    settings: AdaptiveSettings = SETTINGS,
) -> tuple[LearnedMargin, Demand]:
    """State and demand after one round for each need of the one tenant."""
    state = POLICY.start() if state is None else state
    for number, need in enumerate(needs, 1):
        tenant = ContainerView("default/a", "uid", "main", "shared_cores", 2.0, GIB, Figures(need), Resident(GIB))
        seen = View(bounds, (tenant,), NodeMemory(total_bytes=100 * GIB), region_reserve_cores=4.0)
        state, demand = POLICY.judge(state, seen, start_s + ROUND_S * number, settings)
    return state, demand


def bound_of(state: LearnedMargin, settings: AdaptiveSettings = SETTINGS) -> float:
    return state.lines.bound_cores(48, settings.rules.caution)


def rise_of(state: LearnedMargin, settings: AdaptiveSettings) -> float:
    return state.lines.rise_cores(48, settings.rules.caution)


def noise(rounds: int, base: float, height: float, seed: int = 1) -> list[float]:
    """A need around a base that springs up by up to the height every tenth round or so."""
    chance = Random(seed)
    return [base + (height * chance.random() if chance.random() < 0.1 else 0.0) for _ in range(rounds)]


def test_where_cpus_are_shared_the_bound_of_the_lines_holds_and_nothing_is_kept_at_what_is_usual() -> None:
    state, _ = lived(noise(HOUR, 10.0, 4.0))
    state, calm = lived([2.0], state, 3600.0)
    assert (calm.cores, calm.common) == (bound_of(state), False)
    assert calm.cores < state.forecast(48, SETTINGS.rules).bound_cores
    assert calm.now_cores == 2.0, "the rest is a margin"
    assert calm.why[0].numbers["exceeded_ratio"] == pytest.approx(math.exp(-6))
    assert calm.why[1].rule == "adaptive: the need rises by no more within"


def test_a_node_that_never_rises_keeps_the_least_margin_beside_shared_cpus_as_well() -> None:
    assert lived([5.0] * HOUR)[1].cores == 5.0 + SETTINGS.min_margin_cores


def test_twice_the_node_has_twice_the_demand_beside_shared_cpus_as_well() -> None:
    past = noise(HOUR, 10.0, 4.0)
    _, one = lived(past)
    _, two = lived([2 * need for need in past], bounds=Bounds.of(96, smt=True, shape="shared"))
    assert two.cores == pytest.approx(2 * one.cores, rel=0.06), "buckets are 5 % wide"


@pytest.mark.parametrize(
    ("factor", "cores", "common"),
    [
        pytest.param(4.0, 6.25, True, id="usual: canonical, to which its reserve is added"),
        pytest.param(6.0, 6.25 + 2.625, True, id="half more of what it keeps above the need"),
        pytest.param(2.0, 5.0 + 5.25 / 2, False, id="a risk that is taken waits for nobody"),
    ],
)
def test_young_tenants_of_a_small_node_have_canonicals_margin_as_often_as_usual_caution_is_taken(
    factor: float, cores: float, common: bool
) -> None:
    _, cold = lived([5.0] * 250, bounds=SMALL, settings=AdaptiveSettings(margin_factor=factor))
    assert cold.cores == pytest.approx(cores)
    assert cold.common == common
    assert (cold.now_cores is None) == common, "what is canonical's is offered as canonical's is"


@pytest.mark.parametrize(("factor", "part"), [(2.0, 0.5), (4.0, 1.0), (8.0, 1.0)])
def test_young_tenants_beside_shared_cpus_have_canonicals_margin_once_at_most(factor: float, part: float) -> None:
    settings = AdaptiveSettings(margin_factor=factor, cold_start_s=86_400.0)
    state, cold = lived([5.0] * HOUR, settings=settings)
    assert 2 * rise_of(state, settings) < 5.25 / 2, "the cover is less on a node so calm"
    assert cold.cores == 5.0 + part * 5.25
    assert not cold.common
    assert cold.now_cores == 5.0, "the rest is a margin, and is not taken from the offer"


def test_young_tenants_are_covered_against_rising_together_by_the_caution_that_is_taken() -> None:
    past = noise(250, 10.0, 8.0)
    bold_ones, cautious_ones = (AdaptiveSettings(margin_factor=factor) for factor in YOUNG_FACTORS)
    state, bold = lived(past, settings=bold_ones)
    assert bold.cores == max(bound_of(state, bold_ones), 10.0 + 0.75 * 6.5), (
        "what is known, and three quarters of usual"
    )
    state, cautious = lived(past, settings=cautious_ones)
    now = state.lines.need_cores
    assert cautious.cores == pytest.approx(now + min(2 * rise_of(state, cautious_ones), (48.0 - now) / 2))
    assert cautious.cores > bound_of(state, cautious_ones)
    young = next(reason for reason in cautious.why if "kept for young ones" in reason.rule)
    assert young.numbers["young_cores"] == pytest.approx(cautious.cores)
    # Once they are known, that is over.
    state, known = lived([10.0], replace(state, learned_s=SETTINGS.cold_start_s), 502.0)
    assert known.cores == bound_of(state)


@pytest.mark.parametrize("percent", [0.0, 25.0])
@pytest.mark.parametrize("bounds", [BESIDE, SMALL, Bounds.of(48, smt=True)], ids=["shared", "small", "apart"])
def test_a_least_margin_in_percent_holds_for_whatever_was_learned_and_whatever_the_factor(
    percent: float, bounds: Bounds
) -> None:
    settings = AdaptiveSettings(margin_factor=0.0, min_margin_percent=percent)
    _, demand = lived([3.0] * HOUR, bounds=bounds, settings=settings)
    assert demand.cores == pytest.approx(3.0 + percent * bounds.cpus / 100, abs=0.2)


def apart(rises: int, factor: float, height: float = 8.0) -> Demand:
    """The demand for young tenants with pools of their own, after so many rises."""
    needs = ([5.0] * 20 + [5.0 + height]) * rises + [5.0] * 20
    return lived(needs, bounds=Bounds.of(48, smt=True), settings=AdaptiveSettings(margin_factor=factor))[1]


@pytest.mark.parametrize(
    ("rises", "factor", "height", "may_share"),
    [
        pytest.param(2, 4.0, 8.0, False, id="usual: the reserve was too small twice"),
        pytest.param(3, 4.0, 8.0, True, id="usual: thrice"),
        pytest.param(9, 4.0, 3.0, False, id="usual: the reserve is enough for these"),
        pytest.param(0, 5.0, 8.0, True, id="another factor does not begin as Katalyst does"),
        pytest.param(0, 3.0, 8.0, True, id="a lower one neither"),
    ],
)
def test_young_tenants_may_share_cpus_once_canonicals_reserve_is_seen_not_to_be_enough(
    rises: int, factor: float, height: float, may_share: bool
) -> None:
    demand = apart(rises, factor, height)
    assert demand.common, "as long as pools are apart canonical decides"
    assert demand.may_share == may_share


def test_noise_of_three_times_the_height_is_learned_beside_shared_cpus_within_a_half_life() -> None:
    state, _ = lived(noise(HOUR, 10.0, 4.0))
    missed: list[bool] = []
    for number, need in enumerate(noise(round(SETTINGS.rise_half_life_s / ROUND_S), 10.0, 12.0, seed=2), 1):
        missed.append(need > bound_of(state))
        state, _ = lived([need], state, 3600.0 + ROUND_S * number)
    late = missed[len(missed) // 2 :]
    assert sum(late) / len(late) <= 2 * math.exp(-6)


@pytest.mark.parametrize("percent", [100.0, 80.0])
@pytest.mark.parametrize("needs", [[5.0] * 50, [5.0] * 400], ids=["young", "known"])
def test_what_is_never_offered_is_the_settings(percent: float, needs: list[float]) -> None:
    _, demand = lived(needs, settings=AdaptiveSettings(max_offer_percent=percent))
    _, usual = lived(needs)
    assert demand.most_offered_ratio == percent / 100
    assert demand.cores == usual.cores, "CPUs are kept as without it"
