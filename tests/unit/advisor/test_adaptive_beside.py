"""The policy `adaptive` where CPUs are shared: which bound holds, for whom canonical decides, and what is a margin."""

import math
from random import Random

import pytest
from present import present

from services.advisor.core.model.figures import Figures, NodeMemory, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.policy import Demand
from services.advisor.core.prediction.margin import LearnedMargin
from services.advisor.policies.adaptive import POLICY, AdaptiveSettings

GIB = 1 << 30
SETTINGS = AdaptiveSettings()
ROUND_S = 2.0
HOUR = round(3600 / ROUND_S)
BESIDE = Bounds.of(48, smt=True, shape="shared")
"""Tenants may run on every CPU."""


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


def noise(rounds: int, base: float, height: float, seed: int = 1) -> list[float]:
    """A need around a base that springs up by up to the height every tenth round or so."""
    chance = Random(seed)
    return [base + (height * chance.random() if chance.random() < 0.1 else 0.0) for _ in range(rounds)]


def test_where_cpus_are_shared_the_bound_of_the_lines_holds_and_nothing_is_kept_at_what_is_usual() -> None:
    state, _ = lived(noise(HOUR, 10.0, 4.0))
    state, calm = lived([2.0], state, 3600.0)
    assert (calm.cores, calm.common) == (state.lines.bound_cores, False)
    assert calm.cores < present(state.last).bound_cores
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
def test_young_tenants_have_canonicals_margin_as_often_as_usual_caution_is_taken(
    factor: float, cores: float, common: bool
) -> None:
    _, cold = lived([5.0] * 250, settings=AdaptiveSettings(margin_factor=factor))
    assert cold.cores == pytest.approx(cores)
    assert cold.common == common
    assert (cold.now_cores is None) == common, "what is canonical's is offered as canonical's is"


def test_noise_of_three_times_the_height_is_learned_beside_shared_cpus_within_a_half_life() -> None:
    state, _ = lived(noise(HOUR, 10.0, 4.0))
    missed: list[bool] = []
    for number, need in enumerate(noise(round(SETTINGS.rise_half_life_s / ROUND_S), 10.0, 12.0, seed=2), 1):
        missed.append(need > state.lines.bound_cores)
        state, _ = lived([need], state, 3600.0 + ROUND_S * number)
    late = missed[len(missed) // 2 :]
    assert sum(late) / len(late) <= 2 * math.exp(-6)
