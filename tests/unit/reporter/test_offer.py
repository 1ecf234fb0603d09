"""The reported amount over time: down at once, up smoothly."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.reporter.core.smoothing import Headroom, SmoothedOffer, SmoothingRules, next_offer
from services.reporter.core.window import Window, WindowRules
from services.reporter.whatif.report_headroom import ReportQuestion, ReportStep, report_headroom

TWO = SmoothingRules(WindowRules.over(30, 60, min_step=0.3, max_step=4))
FOUR = SmoothingRules(WindowRules.over(30, 120, max_step=4))


def told(rules: SmoothingRules, looks: list[Headroom], offer: SmoothedOffer | None = None) -> list[float | None]:
    """The report after each look, one every 30 s."""
    offer, found = offer or SmoothedOffer(), []
    for index, look in enumerate(looks):
        offer = next_offer(offer, rules, 30.0 * index, look)
        found.append(offer.reported)
    return found


def amounts(*values: float | None) -> list[Headroom]:
    return [Headroom(value) for value in values]


@pytest.mark.parametrize(
    ("rules", "looks", "want"),
    [
        pytest.param(TWO, amounts(10, 10, 10), [None, 10, 10], id="nothing until the window is full"),
        pytest.param(TWO, amounts(10, 10, 12, 12), [None, 10, 11, 12], id="up by the average"),
        pytest.param(TWO, amounts(10, 10, 30, 30, 30), [None, 10, 14, 18, 22], id="up by a step"),
        pytest.param(TWO, amounts(40, 40, 5, 5, 5), [None, 40, 5, 5, 5], id="down at once"),
        pytest.param(TWO, amounts(40, 40, 5, 40, 40), [None, 40, 5, 9, 13], id="and up again from there"),
        pytest.param(TWO, amounts(40, 40, None, 40), [None, 40, 40, 40], id="unknown: the last report stays"),
        pytest.param(TWO, amounts(None, 40, None, 40), [None, None, None, 40], id="unknown is no sample"),
        pytest.param(
            TWO, [Headroom(20, 10, 4), Headroom(20, 10, 4), Headroom(11, 10, 4)], [None, 10, 4],
            id="without the reserve, and at least the least",
        ),
        pytest.param(
            TWO, [Headroom(9, enabled=False), Headroom(9), Headroom(9, enabled=False)], [0, 9, 0], id="reclaim off: 0"
        ),
        pytest.param(
            SmoothingRules(WindowRules.over(30, 30), negligible=0.1), amounts(1, 0.09, 0.1), [1, 0, 0.1],
            id="next to nothing: 0",
        ),
        pytest.param(TWO, amounts(1, 1, -5), [None, 1, 0], id="never negative"),
        pytest.param(
            SmoothingRules(WindowRules.over(30, 60, max_step=4), fall="smooth"), amounts(40, 40, 5, 5),
            [None, 40, 36, 32],
            id="down smoothly where that is asked for",
        ),
    ],
)  # fmt: skip
def test_a_report_over_time(rules: SmoothingRules, looks: list[Headroom], want: list[float | None]) -> None:
    assert told(rules, looks) == want


def test_with_a_bound_nothing_above_it_is_told_although_the_window_remembers_more() -> None:
    free = told(FOUR, amounts(40, 40, 40, 40, 20, 20))
    bounded = told(FOUR, [Headroom(amount, at_most=amount) for amount in (40, 40, 40, 40, 20, 20)])
    assert free == [None, None, None, 40, 20, 24]
    assert bounded == [None, None, None, 40, 20, 20]


looks = st.lists(st.none() | st.floats(0, 500), min_size=1, max_size=40)
rules = st.builds(
    WindowRules.over,
    st.just(30.0),
    st.sampled_from([30.0, 60.0, 150.0]),
    min_step=st.floats(0, 1),
    max_step=st.none() | st.floats(1, 100),
).map(SmoothingRules)


@given(rules, looks)
def test_a_fall_is_told_at_once(rules: SmoothingRules, looks: list[float | None]) -> None:
    before = None
    for now, reported in zip(looks, told(rules, amounts(*looks)), strict=True):
        if now is not None and before is not None and now < before:
            assert reported == now
        before = reported


@given(rules, looks)
def test_with_a_bound_the_report_is_never_above_what_there_is(rules: SmoothingRules, looks: list[float | None]) -> None:
    for now, reported in zip(looks, told(rules, [Headroom(look, at_most=look) for look in looks]), strict=True):
        assert now is None or reported is None or reported <= now


@given(rules, looks)
def test_a_rise_is_by_no_more_than_a_step(rules: SmoothingRules, looks: list[float | None]) -> None:
    found = told(rules, [Headroom(look, at_most=look) for look in looks])
    for before, after in itertools.pairwise(found):
        if before is not None and after is not None and rules.window.max_step is not None:
            assert after - before <= rules.window.max_step + 1e-6


@given(rules, st.floats(0, 500))
def test_what_stays_the_same_is_told_as_it_is(rules: SmoothingRules, amount: float) -> None:
    offer = SmoothedOffer(Window.full_of(amount, 0.0, rules.window), amount)
    assert told(rules, amounts(*[amount] * 8), offer) == pytest.approx([amount] * 8)


def test_the_kind_tells_whole_milli_cores() -> None:
    steps = [
        ReportStep(
            t_s=30.0 * n, headroom_cores=h, reserved_for_report_cores=0.0, min_report_cores=0.0, enable_reclaim=True
        )
        for n, h in enumerate([8.2, 8.2, 10.0, 10.0])
    ]
    question = ReportQuestion(sync_period_s=30.0, window_s=90.0, min_step_cores=0.0, max_step_cores=4.0, steps=steps)
    assert [step.reported_millicpu for step in report_headroom(question).steps] == [None, None, 8800, 9400]
