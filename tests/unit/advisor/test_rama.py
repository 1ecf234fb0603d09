"""rama: which indicators are judged, how they steer the size, and what they may not do."""

from dataclasses import replace
from typing import Any

import pytest
from advisor_world import MakePod, MakeSample
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, Signs, View
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.policy import Demand
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.policies.rama import POLICY, RamaSettings, State, judge
from shared.contracts.sample import PoolReading

BIG = Bounds.of(48, smt=True)


def seen(
    usage: float | None = 10.0,
    size: int | None = 20,
    signs: Signs = Signs(),  # noqa: B008
    request: float = 2.0,
) -> View:
    web = ContainerView("default/web", "web", "main", "shared_cores", request, 0, Figures(usage), Resident())
    return View(
        BIG, (web,), tenants_usage_cores=usage, signs=signs, size_cpus=size, region_reserve_cores=4.0 if size else 0.0
    )


def cores(view: View, **settings: object) -> float:
    return judge(State(), view, 0.0, RamaSettings.model_validate(settings))[1].cores


ONLY_PSI = {"cpu_usage_ratio": None, "sched_wait": None}


@pytest.mark.parametrize(
    ("view", "settings", "want"),
    [
        pytest.param(seen(size=None), {}, 12.5, id="no size yet: canonical"),
        pytest.param(seen(usage=None), {}, 2.0, id="nothing measured: canonical"),
        pytest.param(seen(15.0), {}, 16.0, id="at the target: what it has"),
    ],
)
def test_the_size_in_force_is_corrected(view: View, settings: dict[str, Any], want: float) -> None:
    assert cores(view, **settings) == pytest.approx(want)


def test_a_pool_that_is_busier_than_its_target_asks_for_more_and_an_idle_one_for_less() -> None:
    assert cores(seen(19.0)) > 16 > cores(seen(12.5))


def test_pressure_and_waiting_tasks_ask_for_more_although_the_usage_is_at_its_target() -> None:
    calm = cores(seen(15.0))
    assert cores(seen(15.0, signs=Signs(pressure_percent=40.0))) > calm
    assert cores(seen(15.0, signs=Signs(waiting_tasks=20.0))) > calm


def test_an_indicator_without_target_or_figure_is_not_judged() -> None:
    slow = seen(15.0, signs=Signs(cycles_per_instruction=9.0))
    assert cores(slow) == cores(seen(15.0))
    assert cores(slow, cpi=1.0) > cores(seen(15.0))
    assert cores(seen(15.0), **ONLY_PSI) == 18.75  # no PSI: the canonical estimate


def test_what_metrics_counts_of_the_share_pool_is_judged_and_said(sample: MakeSample, pod: MakePod) -> None:
    def judged(**extra: float) -> Demand:
        pool = PoolReading(pool="share", cpu_usage_cores=15.0, extra=extra)
        view = view_of(sample(pod("web", cpu_millis=2000, cpu_usage_cores=15.0), pools=(pool,)), BIG)
        sized = replace(view, size_cpus=20, region_reserve_cores=4.0)
        return judge(State(), sized, 0.0, RamaSettings(cpi=1.0))[1]

    slow, uncounted = judged(cpi=2.0), judged()
    assert slow.cores > uncounted.cores, "not counted is not judged, whatever the target"
    assert slow.why[0].numbers["cpi / target"] == 2.0
    assert "cpi / target" not in uncounted.why[0].numbers


def test_corrections_add_up_over_time_and_count_by_the_time_that_has_passed() -> None:
    psi, settings = seen(15.0, signs=Signs(pressure_percent=40.0)), RamaSettings.model_validate(ONLY_PSI)
    state, first = judge(State(), psi, 0.0, settings)
    slow, after_5_s = judge(state, psi, 5.0, settings)
    _, after_1_s = judge(state, psi, 1.0, settings)
    step = first.cores - 16
    assert after_5_s.cores == pytest.approx(16 + 2 * step)
    assert after_1_s.cores == pytest.approx(16 + 1.2 * step)
    assert slow.at_s == 5.0


def test_what_more_cpus_cannot_mend_does_not_take_the_machine() -> None:
    last: Round | None = None
    for second in range(0, 600, 5):
        web = ContainerView("default/web", "web", "main", "shared_cores", 2.0, 0, Figures(8.0), Resident())
        view = View(BIG, (web,), tenants_usage_cores=8.0, signs=Signs(pressure_percent=90.0))
        last = decide(view, float(second), ConfiguredPolicy(POLICY, RamaSettings()), SizingRules(), last)
    assert last is not None
    assert last.sizes.share_cpus == 18  # 8 x 1.25 + 4 at most, the reserve


@given(st.none() | st.floats(0, 44), st.integers(4, 44), st.floats(0, 100), st.floats(0, 100), st.floats(0, 8))
def test_never_less_than_what_is_used_nor_far_from_the_canonical_estimate(
    usage: float | None, size: int, pressure: float, waiting: float, request: float
) -> None:
    view = seen(usage, size, Signs(waiting, pressure), request)
    asked, plain = cores(view), cores(seen(usage, None, request=request))
    assert asked >= (usage or 0.0) - 1e-9
    assert asked >= 0.7 * plain - 1e-9 or asked >= (usage or 0.0)
    assert asked <= max(1.3 * plain, plain + 4, usage or 0.0, request) + 1e-9
