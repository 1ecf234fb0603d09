"""Two writers of one NodeMetric: who goes first, who waits for how long, and that turns end."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.reporter.core.node_metric.writer_turn import (
    LONGEST_WAIT_S,
    QUIET_PERIODS,
    ReportTime,
    WriterTurn,
    last_writers,
)

OURS, START, PERIOD_S = "sublet-node-metric", datetime(2026, 1, 1, tzinfo=UTC), 60.0


def at(now_s: float, period_s: float = PERIOD_S) -> ReportTime:
    return ReportTime(now_s, START + timedelta(seconds=now_s), period_s)


def written(by: str | None, at_s: float = 0.0, uid: str = "u", **status: Any) -> dict[str, Any]:
    """The object as the API server keeps it after a write of the whole status."""
    moment = (START + timedelta(seconds=at_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = (
        [] if by is None else [{"manager": by, "subresource": "status", "fieldsV1": {"f:status": {"f:updateTime": {}}}}]
    )
    return {"metadata": {"uid": uid, "managedFields": fields}, "status": {"updateTime": moment, **status}}


EMPTY: dict[str, Any] = {"metadata": {"uid": "u"}}


@pytest.mark.parametrize(
    ("document", "ours"),
    [
        pytest.param(EMPTY, True, id="nobody's yet"),
        pytest.param(written(OURS, 990.0), True, id="the life before has left it"),
        pytest.param(written("koordlet", 990.0), False, id="somebody writes it"),
        pytest.param(written(None, 990.0), False, id="somebody without a name does"),
        pytest.param(written("koordlet", 1000.0 - QUIET_PERIODS * PERIOD_S), True, id="somebody wrote it long ago"),
        pytest.param(written("koordlet", 5000.0), False, id="by a clock that is ahead"),
        pytest.param(written("koordlet", updateTime="soon"), False, id="at no time that can be read"),
        pytest.param({"metadata": {}, "status": "odd"}, False, id="a status that is none"),
    ],
)
def test_at_first_sight_what_somebody_writes_now_is_left_to_him(document: dict[str, Any], ours: bool) -> None:
    assert WriterTurn(OURS).is_ours(document, at(1000.0)) is ours


def test_what_stands_as_it_was_left_is_ours_and_anything_else_is_not() -> None:
    turn = WriterTurn(OURS)
    turn.wrote(written(OURS, 0.0, figure=1))
    assert turn.is_ours(written(OURS, 0.0, figure=1), at(60.0))
    assert turn.other == ""
    # In the same second, under the same time: by its figures alone it differs.
    assert not turn.is_ours(written("koordlet", 0.0, figure=2), at(120.0))
    assert (turn.other, turn.wait_s, turn.left_s) == ("koordlet", 180.0, 180.0)


def test_an_emptied_status_is_a_write_and_an_object_made_anew_is_none() -> None:
    turn = WriterTurn(OURS)
    turn.wrote(written(OURS))
    assert turn.is_ours({"metadata": {"uid": "new"}}, at(60.0))
    assert not turn.is_ours({"metadata": {"uid": "u"}, "status": {}}, at(60.0))


def test_another_sublet_is_another_writer() -> None:
    turn = WriterTurn(OURS)
    turn.wrote(written(OURS, 0.0))
    assert not turn.is_ours(written(OURS, 30.0), at(60.0))
    assert turn.other == OURS


def test_a_write_without_an_answer_may_have_been_made() -> None:
    turn = WriterTurn(OURS)
    turn.wrote(written(OURS, 0.0))
    turn.began_write()
    assert turn.is_ours(written(OURS, 60.0), at(70.0))


def test_who_falls_silent_is_waited_for_and_each_wait_is_longer() -> None:
    turn, now_s = WriterTurn(OURS), 0.0
    for wait_s in (180.0, 360.0, 720.0):
        turn.wrote(written(OURS, now_s))
        theirs, now_s = written("koordlet", now_s + 1), now_s + 60.0
        assert not turn.is_ours(theirs, at(now_s))
        assert turn.wait_s == wait_s
        assert not turn.is_ours(theirs, at(now_s + wait_s - 1))
        # A new write begins the wait anew, at the same length.
        now_s += wait_s - 1
        theirs = written("koordlet", now_s)
        assert not turn.is_ours(theirs, at(now_s))
        assert not turn.is_ours(theirs, at(now_s + wait_s - 1))
        now_s += wait_s
        assert turn.is_ours(theirs, at(now_s))
        assert turn.other == ""


def test_a_touch_a_day_costs_the_same_short_wait_each_time() -> None:
    turn, now_s, waits = WriterTurn(OURS), 0.0, []
    turn.wrote(written(OURS, 0.0))
    for _ in range(12):
        now_s += 86400.0
        theirs = written("koordlet", now_s)
        assert not turn.is_ours(theirs, at(now_s))
        waits.append(turn.wait_s)
        now_s += turn.wait_s
        assert turn.is_ours(theirs, at(now_s))
        turn.wrote(written(OURS, now_s))
    assert waits == 12 * [QUIET_PERIODS * PERIOD_S]


@pytest.mark.parametrize(
    ("held_s", "then_s"),
    [pytest.param(359.0, 360.0, id="soon"), pytest.param(360.0, 180.0, id="after twice the wait")],
)
def test_only_who_comes_back_soon_is_waited_for_longer(held_s: float, then_s: float) -> None:
    turn = WriterTurn(OURS)
    turn.wrote(written(OURS, 0.0))
    theirs = written("koordlet", 60.0)
    assert not turn.is_ours(theirs, at(60.0))
    assert turn.is_ours(theirs, at(240.0))
    turn.wrote(written(OURS, 240.0))
    assert not turn.is_ours(written("koordlet", 240.0 + held_s), at(240.0 + held_s))
    assert turn.wait_s == then_s


@pytest.mark.parametrize(
    ("period_s", "longest_s"),
    [
        pytest.param(60.0, LONGEST_WAIT_S, id="an hour"),
        pytest.param(7200.0, QUIET_PERIODS * 7200.0, id="some periods of two hours"),
    ],
)
def test_no_wait_is_longer_than_the_bound(period_s: float, longest_s: float) -> None:
    turn, now_s, longest = WriterTurn(OURS), 0.0, 0.0
    for _ in range(12):
        turn.wrote(written(OURS, now_s))
        now_s += period_s
        theirs = written("koordlet", now_s)
        assert not turn.is_ours(theirs, at(now_s, period_s))
        longest, now_s = max(longest, turn.wait_s), now_s + turn.wait_s
        assert turn.is_ours(theirs, at(now_s, period_s))
    assert longest == longest_s


def test_a_write_that_was_not_made_is_no_write_of_the_other() -> None:
    turn = WriterTurn(OURS)
    turn.wrote(written(OURS, 0.0))
    theirs = written("koordlet", 60.0)
    assert not turn.is_ours(theirs, at(60.0))
    for now_s in (240.0, 250.0, 260.0):
        assert turn.is_ours(theirs, at(now_s))
        assert (turn.wait_s, turn.other) == (180.0, "")
        turn.began_write()
    assert not turn.is_ours(written("koordlet", 265.0), at(270.0))
    assert turn.wait_s == 360.0


def test_a_turn_without_a_write_stays() -> None:
    turn = WriterTurn(OURS)
    turn.wrote(written(OURS, 0.0))
    theirs = written("koordlet", 60.0)
    assert not turn.is_ours(theirs, at(60.0))
    # Its uses may not be known yet: it is asked again before it has written.
    assert turn.is_ours(theirs, at(240.0))
    assert turn.is_ours(theirs, at(250.0))


HOURS = 24
SHORTEST_CYCLE_S = 3 * QUIET_PERIODS * PERIOD_S
"""One wait, and a turn of twice that: with a shorter turn the next wait is longer."""
MOMENTS = st.lists(st.integers(0, HOURS * 3600), max_size=400).map(sorted)
REGULAR = st.tuples(st.integers(1, 7200), st.integers(0, 59)).map(
    lambda how: list(range(how[1], HOURS * 3600, how[0]))[:5000]
)


@given(theirs=st.one_of(MOMENTS, REGULAR), phase=st.integers(0, 59))
@example(theirs=list(range(0, HOURS * 3600, 240)), phase=0)
@example(theirs=list(range(0, HOURS * 3600, 600)), phase=0)
@settings(deadline=None, max_examples=30)
def test_two_writers_alternate_but_rarely(theirs: list[int], phase: int) -> None:
    """Whenever the other writes, by chance or by its clock: two turns take nine minutes and more, taken together."""
    turn, document, turns, last = WriterTurn(OURS), EMPTY, 0, ""
    others = iter(theirs)
    other_s = next(others, math.inf)
    for now_s in range(phase, HOURS * 3600, 60):
        while other_s <= now_s:
            document = written("koordlet", other_s, seq=other_s)
            turns, last, other_s = turns + (last == OURS), "koordlet", next(others, math.inf)
        if turn.is_ours(document, at(float(now_s))):
            document = written(OURS, now_s)
            turn.wrote(document)
            turns, last = turns + (last == "koordlet"), OURS
    assert turns <= 2 * (2 + HOURS * 3600 / SHORTEST_CYCLE_S)


@given(phases=st.tuples(st.integers(0, 59), st.integers(0, 59)))
@settings(deadline=None, max_examples=30)
def test_of_two_sublets_one_ends_up_alone(phases: tuple[int, int]) -> None:
    document, turns, last = EMPTY, 0, -1
    both = (WriterTurn(OURS), WriterTurn(OURS))
    order = sorted((minute * 60 + phases[who], who) for minute in range(HOURS * 60) for who in (0, 1))
    for now_s, who in order:
        if both[who].is_ours(document, at(float(now_s))):
            document = written(OURS, now_s, who=who)
            both[who].wrote(document)
            turns, last = turns + (last != who), who
    assert turns <= 2 * (2 + math.log2(HOURS * 60))


def test_the_last_writer_is_whoever_has_the_time_of_the_status() -> None:
    document = written("koordlet")
    document["metadata"]["managedFields"] += [
        {"manager": "koord-manager", "fieldsV1": {"f:spec": {"f:metricCollectPolicy": {}}}},
        {"manager": OURS, "subresource": "status", "fieldsV1": {"f:status": {"f:podsMetric": {}}}},
    ]
    assert last_writers(document) == ["koordlet"]
