"""Turns: everybody is looked at within a period, nobody twice in one, and no moment has all of them."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.turns import Turns

PERIOD_S = 10.0
NAMES = [f"kubepods/pod{number}" for number in range(100)]


@given(st.lists(st.floats(min_value=0.1, max_value=3.0), min_size=1, max_size=60))
def test_nobody_waits_for_longer_than_a_period_and_the_time_between_two_passes(pauses: list[float]) -> None:
    turns, now_s = Turns(), 100.0
    turns.begin(NAMES, now_s, PERIOD_S)
    looked_s = dict.fromkeys(NAMES, now_s)
    for pause_s in pauses:
        now_s += pause_s
        for name in turns.due(now_s, PERIOD_S):
            looked_s[name] = now_s
        assert all(now_s - at_s < PERIOD_S for at_s in looked_s.values())


def test_each_pass_has_its_part_and_each_group_one_turn_a_period() -> None:
    turns = Turns()
    turns.begin(NAMES, 0.0, PERIOD_S)
    parts = [turns.due(float(second), PERIOD_S) for second in range(1, 21)]
    assert sorted(chain(*parts)) == sorted(NAMES * 2)
    assert max(map(len, parts)) <= 20


def test_a_period_that_became_shorter_counts_at_once_and_whoever_is_gone_has_no_turn() -> None:
    turns = Turns()
    turns.begin(NAMES, 0.0, 3600.0)
    assert len(turns.due(0.1, 0.0)) == len(NAMES)
    turns.begin(NAMES[:1], 1.0, PERIOD_S)
    assert turns.due(11.0, PERIOD_S) == NAMES[:1]
