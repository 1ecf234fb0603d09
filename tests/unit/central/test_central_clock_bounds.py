"""Replica bounds by the clock: what a cron expression names, held against a plain scan, and which bound holds."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.clock_bounds.cron import LONGEST, Cron, parse_cron
from services.central.core.clock_bounds.replicas import (
    CronBound,
    LocalTime,
    Replicas,
    TimeBound,
    scheduled_bounds,
)
from shared.errors import Refused

MONDAY_S = int(datetime(2023, 11, 20, tzinfo=UTC).timestamp())
MONDAY = MONDAY_S // 60


def at(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp()) // 60


@pytest.mark.parametrize(
    ("cron", "moment", "fires"),
    [
        ("* * * * *", "2023-11-20T00:00", True),
        ("0 8 * * 1-5", "2023-11-20T08:00", True),
        ("0 8 * * 1-5", "2023-11-19T08:00", False),
        ("59 23 * * 0", "2023-11-19T23:59", True),
        ("*/20 * * * *", "2023-11-20T00:40", True),
        ("5/20 * * * *", "2023-11-20T00:45", True),
        ("5/20 * * * *", "2023-11-20T00:00", False),
        ("10-30/20 * * * *", "2023-11-20T00:50", False),
        ("1,2 3,4 * * *", "2023-11-20T04:02", True),
        ("0 0 29 2 *", "2024-02-29T00:00", True),
        ("0 0 1 * 1", "2023-11-20T00:00", True),
        ("0 0 1 * 1", "2023-12-01T00:00", True),
        ("0 0 1 * 1", "2023-11-21T00:00", False),
        ("0 0 1 * *", "2023-11-20T00:00", False),
        ("0 0 * * 2", "2023-11-20T00:00", False),
        # a step restricts, so that either day is enough; one of step 1 does not
        ("0 0 */2 * 1", "2023-11-21T00:00", True),
        ("0 0 */1 * 2", "2023-11-20T00:00", False),
        ("0 0 3,* * 2", "2023-11-20T00:00", False),
    ],
)
def test_an_expression_names_its_minutes(cron: str, moment: str, fires: bool) -> None:
    assert parse_cron(cron).fires(at(moment)) is fires


@pytest.mark.parametrize(
    "text",
    [
        "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *",
        "* * * * 7", "5-1 * * * *", "*/0 * * * *", "*/ * * * *", "/2 * * * *", "-1 * * * *", "1- * * * *",
        "*-5 * * * *", "1,,2 * * * *", "1.5 * * * *", "MON * * * *", "@daily", "٣ * * * *", "1e1 * * * *", "+1 * * * *",
        "*/2/3 * * * *", "1-2-3 * * * *", "001 * * * *", "*" * (LONGEST + 1), "0 0 * * 1 \x00",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused_and_says_what_is(text: str) -> None:
    with pytest.raises(Refused, match=r"want .*such as '0 8 \* \* 1-5'") as refused:
        parse_cron(text)
    assert refused.value.reason == "invalid_cron"
    assert len(str(refused.value)) < 2 * LONGEST + 150


def part(low: int, high: int) -> st.SearchStrategy[str]:
    one = st.integers(low, high)
    span = st.tuples(one, one).map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.integers(1, 99).map("/{}".format)
    return st.one_of(st.just("*"), one.map(str), span, st.tuples(span | st.just("*") | one.map(str), step).map("".join))


def field(low: int, high: int) -> st.SearchStrategy[str]:
    return st.lists(part(low, high), min_size=1, max_size=3).map(",".join)


CRONS = st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)).map(" ".join).map(parse_cron)


@given(CRONS, st.integers(0, 3000), st.integers(0, 3000))
def test_what_fired_last_is_what_a_scan_finds(cron: Cron, since: int, back: int) -> None:
    now = MONDAY + since
    scanned = next((minute for minute in range(now, now - back - 1, -1) if cron.fires(minute)), None)
    assert cron.last_fired(now, now - back) == scanned


@given(CRONS, st.integers(0, 20_000))
def test_an_expression_names_a_minute_by_its_fields(cron: Cron, since: int) -> None:
    moment = datetime.fromtimestamp((MONDAY + since) * 60, UTC)
    days = (moment.day in cron.days, moment.isoweekday() % 7 in cron.weekdays)
    want = (moment.minute in cron.minutes and moment.hour in cron.hours and moment.month in cron.months
            and (any(days) if cron.either_day else all(days)))  # fmt: skip
    assert cron.fires(MONDAY + since) == want


BOUNDS = st.builds(
    CronBound,
    st.sampled_from(["* * * * *", "0 8 * * 1-5", "0 20 * * *", "*/7 * * * *", "0 0 1 * 1", "bad"]),
    st.builds(Replicas, st.none() | st.integers(0, 50), st.none() | st.integers(0, 50)),
)
SECONDS = st.none() | st.integers(MONDAY_S - 90_000, MONDAY_S + 90_000)
TIME_BOUNDS = st.lists(st.builds(TimeBound, st.lists(BOUNDS, max_size=4), SECONDS, SECONDS), max_size=3)


@given(TIME_BOUNDS, st.integers(MONDAY_S - 90_000, MONDAY_S + 90_000), st.integers(-720, 840))
def test_bounds_are_in_order_and_what_decided_was_in_force(
    time_bounds: list[TimeBound], now_s: int, offset_minutes: int
) -> None:
    moment = LocalTime(now_s, offset_minutes)
    found = scheduled_bounds((1, 10), time_bounds, moment)
    assert found.least <= found.most
    if found.active is None:
        assert (found.least, found.most) == (1, 10)
    else:
        place, index = found.active
        assert time_bounds[place].in_force(now_s)
        assert time_bounds[place].bounds[index].cron != "bad"
    assert found == scheduled_bounds((1, 10), time_bounds, moment)


@given(TIME_BOUNDS, st.integers(MONDAY_S - 90_000, MONDAY_S + 90_000))
def test_what_fires_this_minute_holds_in_either_way(time_bounds: list[TimeBound], now_s: int) -> None:
    for_its_minute = scheduled_bounds((1, 10), time_bounds, LocalTime(now_s), "minute")
    held = scheduled_bounds((1, 10), time_bounds, LocalTime(now_s))
    assert held.invalid == for_its_minute.invalid
    if for_its_minute.active is not None:
        assert held.active is not None
        assert held.active >= for_its_minute.active


@given(st.integers(-720, 840), st.integers(0, 7 * 24 * 3600))
def test_a_zone_moves_the_clock_and_nothing_else(offset_minutes: int, since_s: int) -> None:
    bounds = [TimeBound([CronBound("0 8 * * 1-5", Replicas(5, 9)), CronBound("0 20 * * 1-5", Replicas(1, 2))])]
    here = scheduled_bounds((1, 10), bounds, LocalTime(MONDAY_S + since_s - 60 * offset_minutes, offset_minutes))
    assert here == scheduled_bounds((1, 10), bounds, LocalTime(MONDAY_S + since_s))
