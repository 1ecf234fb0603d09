"""What was asked of a state of the policy `adaptive` is learned once, and kept by nobody but who uses it."""

import gc
import weakref

import pytest

from services.advisor.core.prediction.margin import LearnedMargin
from services.advisor.policies.adaptive import POLICY, AdaptiveSettings

USUAL = AdaptiveSettings()


def lived(needs: list[float]) -> LearnedMargin:
    state = LearnedMargin()
    for number, need in enumerate(needs):
        state = state.observe(need, 2.0 * number, 48, USUAL.rules.learning)
    return state


def test_rows_that_differ_in_their_risk_alone_learn_once() -> None:
    state, bold = lived([10.0, 14.0] * 50), AdaptiveSettings(margin_factor=0.5)
    one, other = (state.observe(12.0, 200.0, 48, settings.rules.learning) for settings in (bold, USUAL))
    assert one is other, "the same was asked of the same state"
    assert one.forecast(48, bold.rules).bound_cores < other.forecast(48, USUAL.rules).bound_cores, "by their own risk"


@pytest.mark.parametrize(
    ("need", "now_s", "settings", "is_idle"),
    [
        pytest.param(12.5, 200.0, USUAL, False, id="another need"),
        pytest.param(12.0, 201.0, USUAL, False, id="another time"),
        pytest.param(12.0, 200.0, AdaptiveSettings(rise_half_life_s=20_000.0), False, id="other rules"),
        pytest.param(12.0, 200.0, USUAL, True, id="nobody there"),
    ],
)
def test_another_question_has_its_own_answer(
    need: float, now_s: float, settings: AdaptiveSettings, is_idle: bool
) -> None:
    state = lived([10.0, 14.0] * 50)
    usual = state.observe(12.0, 200.0, 48, USUAL.rules.learning)
    found = state.observe(need, now_s, 48, settings.rules.learning, is_idle=is_idle)
    again = lived([10.0, 14.0] * 50).observe(need, now_s, 48, settings.rules.learning, is_idle=is_idle)
    assert found == again != usual


def test_a_state_does_not_keep_what_follows_it() -> None:
    first = POLICY.start()
    after = weakref.ref(first.observe(5.0, 0.0, 48, USUAL.rules.learning))
    gc.collect()
    assert after() is None
