"""From needs to weights: which lengths of step, which nodes are held out, and what is too little."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from present import present

from shared.errors import Refused
from sublet.training.evaluate import Tally, tally
from sublet.training.learn import MIN_EXAMPLES, TrainingPlan, learn
from sublet.training.needs import Needs
from sublet.training.report import subjects
from sublet.training.synthetic import synthetic


def node(name: str = "n", step_s: float = 10.0, count: int = 800, seed: int = 0) -> Needs:
    chance = Random(seed)
    readings = tuple((step_s * number, 2 + chance.random()) for number in range(count))
    return Needs("file", name, readings)


@pytest.mark.parametrize(
    ("needs", "steps_s"),
    [
        pytest.param([node()], [10.0], id="short steps"),
        pytest.param([node(step_s=300.0)], [300.0], id="long steps"),
        pytest.param([node(), node(step_s=300.0)], [10.0, 300.0], id="both"),
        pytest.param([node(count=18_000)], [10.0, 300.0], id="long enough for both"),
    ],
)
def test_a_model_is_made_for_each_step_that_there_is_enough_for(needs: list[Needs], steps_s: list[float]) -> None:
    assert [model.step_s for model in learn(needs, TrainingPlan()).models] == steps_s


@pytest.mark.parametrize(
    "needs",
    [
        pytest.param([], id="nothing"),
        pytest.param([node(count=200)], id="too short"),
        pytest.param([node(step_s=900.0)], id="too rare"),
        pytest.param([node(f"n{i}", count=80, seed=i) for i in range(50)], id="many, but each hardly one past long"),
    ],
)
def test_too_little_is_refused_with_what_to_do(needs: list[Needs]) -> None:
    with pytest.raises(Refused, match=f"want {MIN_EXAMPLES} steps of 10 or 300 s; record longer") as refused:
        learn(needs, TrainingPlan())
    assert refused.value.reason == "too_little"


@pytest.mark.parametrize("count", [1, 5])
def test_a_fifth_is_held_out_of_the_fit(count: int) -> None:
    (model,) = learn([node(f"n{i}", seed=i) for i in range(count)], TrainingPlan()).models
    learned, held_out = float(model.trained_on["examples"]), float(model.trained_on["held_out"])
    assert held_out == pytest.approx((learned + held_out) / 5, abs=1)


def test_what_is_learned_says_from_what_and_is_the_same_again() -> None:
    needs = [node(), node("other", step_s=300.0)]
    weights = learn(needs, TrainingPlan(seed=7))
    assert weights.models[0].trained_on == {"sources": "file", "nodes": 1, "examples": 588, "held_out": 147, "seed": 7}
    assert weights.model_dump_json() == learn(needs, TrainingPlan(seed=7)).model_dump_json()


def test_many_examples_are_thinned_out() -> None:
    (model,) = learn([node(count=2000)], TrainingPlan(max_examples=600)).models
    assert model.trained_on["examples"] == 600


def test_the_shipped_weights_keep_their_promise_on_tenants_they_have_not_seen() -> None:
    from services.advisor.policies.model import shipped_models

    fine = shipped_models()[0]
    sums = tally(synthetic(seed=99, nodes=1), subjects([fine], []), fine)["model"]
    assert sums.predictions > 1000
    assert present(sums.figures()["coverage_percent"]) >= 90


def test_a_tally_counts_what_was_covered_and_by_how_much_it_was_not() -> None:
    sums = Tally()
    sums.add(4.0, 3.0, set_aside=False)
    sums.add(2.0, 3.0, set_aside=True)
    assert sums.figures() == {
        "predictions": 2, "coverage_percent": 50.0, "above_cores": 0.5, "below_cores": 0.5, "need_cores": 3.0,
        "canonical_percent": 50.0,
    }  # fmt: skip
    assert Tally().figures()["coverage_percent"] is None


def test_a_prediction_is_judged_by_the_largest_need_until_its_horizon_has_ended(trace: Callable[..., Any]) -> None:
    """Canonical says 2.5 cores while 2 are used; every sixth step uses 8: each minute ahead holds one."""
    fine = learn([node()], TrainingPlan()).models[0]
    cores = [8.0 if number % 6 == 0 else 2.0 for number in range(200)]
    sums = tally([trace(cores)], subjects([fine], ["canonical:usage_factor=1"]), fine)
    by_canonical = sums["canonical:usage_factor=1"].figures()
    assert by_canonical["need_cores"] == 8.0
    assert 10 < present(by_canonical["coverage_percent"]) < 25
    assert sums["model"].predictions == sums["canonical:usage_factor=1"].predictions
