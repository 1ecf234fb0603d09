"""Waiting of tasks that come and go, only some of which are read in a pass: what is true reads as itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.metrics.core.reads.tally import CounterTally, tallied

NS = 1_000_000_000
spacings_s = st.lists(st.sampled_from([0.1, 0.2, 2.0, 2.1, 30.0]), min_size=1, max_size=12)
shares = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(shares, st.integers(1, 6), spacings_s)
def test_constant_waiting_reads_as_itself_however_far_apart_the_passes_and_few_of_the_tasks_that_are_read(
    waiting: list[float], step: int, gaps_s: list[float]
) -> None:
    """Each task waits for a share of the time. From the second reading of all on, in every single pass."""
    tally, now_s = CounterTally(0.0), 0.0
    names = [str(number) for number in range(len(waiting))]
    for number in range(2 * step + 2 * len(gaps_s)):
        now_s += gaps_s[number % len(gaps_s)]
        read = {name: round(waiting[int(name)] * now_s * NS) for name in names[number % step :: step]}
        before, tally = tally, tallied(tally, read, names, now_s, NS)
        if number >= 2 * step:
            rate = (tally.total - before.total) / (now_s - before.at_s) / NS
            assert rate == pytest.approx(sum(waiting), abs=1e-6)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 2.0, -1.0]), st.integers(0, 10**12)), max_size=12))
def test_no_task_counts_for_more_than_one_and_the_total_never_goes_back(looks: list[tuple[float, int]]) -> None:
    tally = CounterTally(0.0)
    for gap_s, value in looks:
        before, tally = tally, tallied(tally, {"a": value}, ["a"], tally.at_s + gap_s, NS)
        assert 0 <= tally.total - before.total <= NS * max(0.0, gap_s) * (1 + 1e-9) + 1


@pytest.mark.parametrize(
    ("looks", "totals"),
    [
        pytest.param([{"a": 5}, {"a": 6}], [0, 1], id="the first time adds nothing"),
        pytest.param([{"a": 5}, {}, {"a": 9}, {}], [0, 0, 2, 4], id="one left out counts by what it did last"),
        pytest.param([{"a": 5}, {"a": 3}, {"a": 4}], [0, 0, 1], id="one that went back adds nothing"),
        pytest.param([{"a": 5, "b": 5}, {"a": 7, "b": 6}, {"b": 7}], [0, 3, 4], id="one that is gone is forgotten"),
        pytest.param([{"a": 0}, {"a": 50}, {"a": 51}, {"a": 51}], [0, 10, 20, 21], id="none grows by more than it can"),
    ],
)
def test_growth_of_members_by_the_second(looks: list[dict[str, int]], totals: list[float]) -> None:
    tally, found = CounterTally(0.0), []
    for second, look in enumerate(looks):
        members = list(look) if "b" in look else ["a"]
        tally = tallied(tally, look, members, float(second), 10.0)
        found.append(tally.total)
    assert found == totals


@pytest.mark.parametrize("gap_s", [0.01, 0.1, 0.2, 2.0])
def test_delays_that_are_told_when_they_end_read_as_themselves_over_time(gap_s: float) -> None:
    """A task that waits for 0.3 s and then runs for 0.1 s."""
    tally, passes = CounterTally(0.0), round(20 / gap_s)
    for number in range(passes + 1):
        ended = int(number * gap_s / 0.4 + 1e-9)
        tally = tallied(tally, {"a": ended * 3 * NS // 10}, ["a"], number * gap_s, NS)
    assert tally.total / NS == pytest.approx(15.0, abs=0.3)


def test_what_is_read_twice_in_one_moment_is_not_lost() -> None:
    first = tallied(CounterTally(0.0), {"a": 0}, ["a"], 0.0, NS)
    twice = tallied(first, {"a": 7}, ["a"], 0.0, NS)
    assert tallied(twice, {"a": 9}, ["a"], 1.0, NS).total == 9
