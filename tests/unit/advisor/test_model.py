"""The policy `model`: when the predictor decides, when canonical does, and what always counts."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.figures import Figures, NodeMemory, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, Signs, View
from services.advisor.core.policy import Demand
from services.advisor.core.prediction.predictor import StepModel
from services.advisor.core.prediction.track import Track
from services.advisor.policies import canonical, model
from services.advisor.policies.model import POLICY, SHIPPED, ModelSettings, read_weights
from services.advisor.settings import choose
from shared.contracts.pod import QosClass
from shared.errors import BadConfig

GIB = 1 << 30
BOUNDS = Bounds.of(48, smt=True)
STEPS = 12
FINE = StepModel(step_s=10, history_steps=STEPS, horizon_steps=2, coverage=0.95, weights={"max": 1.0}, margin=1.5)
COARSE = FINE.model_copy(update={"step_s": 300.0, "margin": 3.0})
SETTINGS = ModelSettings.with_models([FINE, COARSE])
LOW = ModelSettings.with_models([FINE.model_copy(update={"weights": {"min": 1.0}, "margin": 1.0})])
"""A predictor that hopes for the best."""


def container(
    name: str = "a",
    usage: float | None = None,
    request: float = 2.0,
    load1: float | None = None,
    qos: QosClass = "shared_cores",
) -> ContainerView:
    return ContainerView(f"default/{name}", f"uid-{name}", "main", qos, request, GIB,
                         Figures(usage, load1), Resident(GIB))  # fmt: skip


def view(*containers: ContainerView, **over: Any) -> View:
    return View(BOUNDS, containers, NodeMemory(total_bytes=100 * GIB), **over)


def lived(
    needs: list[float],
    state: tuple[Track, ...] | None = None,
    start_s: float = 0.0,
    period_s: float = 10.0,
    settings: ModelSettings = SETTINGS,
) -> tuple[tuple[Track, ...], Demand]:
    """State and demand after one round for each need of the one tenant."""
    state = POLICY.start() if state is None else state
    for number, need in enumerate(needs, 1):
        state, demand = POLICY.judge(state, view(container(usage=need)), start_s + period_s * number, settings)
    return state, demand


def by_canonical(seen: View) -> Demand:
    return canonical.judge(None, seen, 0.0, canonical.CanonicalSettings())[1]


def test_canonical_decides_until_the_past_is_whole() -> None:
    _, before = lived([2.0] * (STEPS - 1))
    assert before.cores == by_canonical(view(container(usage=2.0))).cores == 2.5
    assert "the past is too short" in before.why[0].rule
    _, after = lived([2.0] * STEPS)
    assert after.cores == 3.0
    assert after.why[0].rule == "model: need of the next 20 s, at least that of now"
    assert after.why[0].numbers["bound_cores"] == 3.0


def test_readings_too_rare_for_short_steps_are_judged_by_long_ones() -> None:
    _, demand = lived([2.0] * STEPS, period_s=300.0)
    assert demand.cores == 6.0
    assert "next 600 s" in demand.why[0].rule


@given(needs=st.lists(st.floats(0, 64), min_size=1, max_size=40))
def test_the_tenants_never_count_less_than_they_use_or_queue_for(needs: list[float]) -> None:
    state = POLICY.start()
    for number, need in enumerate(needs):
        seen = view(container(usage=need / 2, load1=need))
        state, demand = POLICY.judge(state, seen, 10.0 * number, LOW)
        assert demand.cores >= need - 1e-9


@given(needs=st.lists(st.floats(0, 64), min_size=STEPS, max_size=STEPS + 20), extra=st.floats(0, 64))
def test_more_use_now_never_gives_tenants_less_whatever_the_past(needs: list[float], extra: float) -> None:
    state, _ = lived(needs)
    now_s = 10.0 * len(needs) + 5
    seen = [view(container(usage=needs[-1] + more)) for more in (0.0, extra)]
    less, more = (POLICY.judge(state, one, now_s, SETTINGS)[1] for one in seen)
    assert more.cores >= less.cores


def test_a_spike_counts_in_the_round_that_sees_it() -> None:
    state, _ = lived([1.0] * 20, settings=LOW)
    for spike in (
        view(container(usage=30.0)),
        view(container(usage=1.0), tenants_usage_cores=30.0),
        view(container(usage=1.0), tenants_usage_cores=8.0, signs=Signs(waiting_tasks=22.0)),
    ):
        _, demand = POLICY.judge(state, spike, 205.0, LOW)
        assert demand.cores == 30.0
        assert demand.why[0].numbers["bound_cores"] == 1.0


def test_who_waits_counts_while_canonical_decides_too() -> None:
    seen = view(container(usage=1.0), tenants_usage_cores=8.0, signs=Signs(waiting_tasks=22.0))
    _, demand = POLICY.judge(POLICY.start(), seen, 10.0, SETTINGS)
    assert "canonical decides" in demand.why[0].rule
    assert demand.cores == 30.0


def test_what_is_not_measured_counts_its_request_on_top() -> None:
    state, alone = lived([2.0] * 20)
    seen = view(container(usage=2.0), container("new", None, request=5.0),
                container("own", 0.1, request=4.0, qos="dedicated_cores"))  # fmt: skip
    _, demand = POLICY.judge(state, seen, 205.0, SETTINGS)
    assert demand.cores == alone.cores + 5.0 + 4.0


def test_a_view_without_figures_is_canonicals_and_adds_nothing_to_the_past() -> None:
    state, _ = lived([2.0] * 20)
    blind = view(container(usage=2.0, request=7.0)).blind()
    after, demand = POLICY.judge(state, blind, 205.0, SETTINGS)
    assert after == state
    assert demand.cores == by_canonical(blind).cores == 7.0
    assert "no figures" in demand.why[0].rule


def climbing(count: int) -> list[float]:
    """Every step half as much again as the bound of the step before allowed: each prediction is a miss."""
    return [1.6**number for number in range(count)]


def test_a_predictor_that_is_wrong_too_often_is_set_aside_and_returns_after_being_right() -> None:
    settings = ModelSettings(max_miss_ratio=0.1, window_steps=20, return_after_s=200)
    settings._models = (FINE,)
    state, good = lived([1.0] * 20, settings=settings)
    assert good.cores == 1.5
    state, wrong = lived(climbing(6), state, 200.0, settings=settings)
    assert wrong.cores == pytest.approx(1.25 * climbing(6)[-1])
    assert "too many needs exceeded their bound; canonical decides" in wrong.why[0].rule
    numbers: Mapping[str, Any] = wrong.why[0].numbers
    assert numbers["misses"] > numbers["max_misses"] == 2
    state, still = lived([1.0] * 20, state, 260.0, settings=settings)
    assert still.cores == 1.25
    _, back = lived([1.0] * 40, state, 460.0, settings=settings)
    assert back.cores == 1.5
    assert "canonical" not in back.why[0].rule


def test_other_weights_begin_with_a_past_of_their_own() -> None:
    state, _ = lived([2.0] * 20)
    other = ModelSettings.with_models([FINE.model_copy(update={"margin": 2.0})])
    state, demand = POLICY.judge(state, view(container(usage=2.0)), 205.0, other)
    assert demand.cores == 2.5
    assert len(state) == 1


def test_memory_is_canonicals() -> None:
    _, demand = lived([2.0] * 20)
    assert demand.memory_bytes == by_canonical(view(container(usage=2.0))).memory_bytes


def test_the_state_of_a_round_is_not_changed_by_the_next() -> None:
    state, _ = lived([2.0] * 20)
    copy = tuple(replace(track) for track in state)
    lived([9.0] * 5, state, 200.0)
    assert state == copy


def test_the_shipped_weights_are_whole_small_and_say_what_they_were_learned_from() -> None:
    weights = read_weights(SHIPPED)
    assert SHIPPED.stat().st_size < 4096
    assert [one.step_s for one in weights.models] == [10.0, 300.0]
    assert all(one.coverage == 0.95 and one.trained_on["sources"] for one in weights.models)
    assert ModelSettings().models == weights.models


def test_weights_of_ones_own_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "weights.json"
    file.write_text(json.dumps({"v": 1, "models": [FINE.model_dump(mode="json")]}))
    choice = choose({"policy": "model", "policies": {"model": {"weights": str(file)}}})
    assert isinstance(choice.policy_settings, ModelSettings)
    assert choice.policy_settings.models == (FINE,)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(None, "No such file", id="no file"),
        pytest.param("{", "file: not JSON", id="no JSON"),
        pytest.param('{"v": 2, "models": []}', "v: want 1", id="another version"),
        pytest.param('{"v": 1, "models": []}', "models: want at least 1 item;", id="no model"),
        pytest.param(" " * model.MAX_BYTES + '{"v": 1}', "file: not JSON", id="too large"),
    ],
)
def test_weights_that_cannot_be_used_are_refused_with_what_to_do(tmp_path: Path, text: str | None, names: str) -> None:
    file: Path = tmp_path / "weights.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadConfig, match=names) as refused:
        choose({"policies": {"model": {"weights": str(file)}}})
    assert "sublet train" in str(refused.value)
