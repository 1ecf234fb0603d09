"""Which message may be used: the newest, and never one seen before."""

from hypothesis import given
from hypothesis import strategies as st

from shared.core.bus.newest import PERIOD_S, NewestGate

NOW_S = 100.0

Arrived = tuple[str, int]
"""The boot of a sender and the number of its message."""
messages = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 9)), max_size=60)


@given(messages)
def test_within_one_boot_the_accepted_numbers_ascend(arriving: list[Arrived]) -> None:
    gate = NewestGate()
    accepted: dict[str, int] = {}
    for boot, seq in arriving:
        if gate.admit(boot, seq, NOW_S) == "new":
            assert seq > accepted.get(boot, -1)
            accepted[boot] = seq


@given(messages)
def test_a_boot_that_was_replaced_does_not_speak_again_while_the_one_after_it_does(arriving: list[Arrived]) -> None:
    gate = NewestGate()
    replaced: set[str | None] = set()
    current: str | None = None
    for boot, seq in arriving:
        verdict = gate.admit(boot, seq, NOW_S)
        assert (verdict == "retired") == (boot in replaced)
        if verdict == "new" and boot != current:
            replaced |= {current} - {None}
            current = boot


@given(messages)
def test_the_newest_is_always_the_last_one_accepted(arriving: list[Arrived]) -> None:
    gate = NewestGate()
    last: tuple[str | None, int] = (None, -1)
    for boot, seq in arriving:
        if gate.admit(boot, seq, NOW_S) == "new":
            last = (boot, seq)
        assert (gate.boot_id, gate.seq) == last


@given(messages, st.tuples(st.sampled_from("abcdef"), st.integers(0, 9)))
def test_judging_takes_nothing(arriving: list[Arrived], asked: Arrived) -> None:
    gate = NewestGate()
    for boot, seq in arriving:
        gate.admit(boot, seq, NOW_S)
    before = (gate.boot_id, gate.seq)
    verdict = gate.judge(*asked, NOW_S)
    assert (gate.boot_id, gate.seq) == before
    assert gate.admit(*asked, NOW_S) == verdict


@given(messages)
def test_taken_twice_a_message_is_a_replay_or_older(arriving: list[Arrived]) -> None:
    gate = NewestGate()
    for boot, seq in arriving:
        gate.admit(boot, seq, NOW_S)
        assert gate.admit(boot, seq, NOW_S) != "new"


def test_the_verdicts_say_why() -> None:
    gate = NewestGate()
    told = [gate.admit(*m, NOW_S) for m in (("a", 5), ("a", 5), ("a", 4), ("a", 6), ("b", 0), ("a", 7), ("b", 1))]
    assert told == ["new", "replayed", "stale", "new", "new", "retired", "new"]


def test_sixteen_restarts_are_remembered() -> None:
    gate = NewestGate()
    for boot in range(17):
        gate.admit(str(boot), 0, NOW_S)
    assert [gate.judge(str(boot), 9, NOW_S) for boot in (0, 15)] == ["retired", "retired"]


def test_a_living_sender_comes_back_within_three_periods_of_the_others_death() -> None:
    """Two take turns, each once a period; the one dies right after its word."""
    gate = NewestGate()
    for turn in range(5):
        assert gate.admit("a", turn, turn * PERIOD_S) == ("new" if turn == 0 else "retired")
        assert gate.admit("b", turn, (turn + 0.5) * PERIOD_S) == "new"
    died_s, verdict, turn = 4.5 * PERIOD_S, "", 5
    while verdict != "new":
        verdict = gate.admit("a", turn, turn * PERIOD_S)
        turn += 1
    assert (turn - 1) * PERIOD_S - died_s <= 3 * PERIOD_S
    assert gate.admit("b", 9, turn * PERIOD_S) == "retired"


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 2 * PERIOD_S)), min_size=1, max_size=20))
def test_one_message_in_a_living_senders_place_never_locks_it_out(forged: list[tuple[int, float]]) -> None:
    """Whatever is said once, in any boot's name and with any number: the living one is heard again."""
    for name in ("alive", "stranger"):
        gate, now_s = NewestGate(), 0.0
        for seq, later_s in forged:
            gate.admit(name, seq, now_s := now_s + later_s)
        taken = [gate.admit("alive", seq, now_s + seq * PERIOD_S) for seq in range(1, 8)]
        assert "new" in taken
        assert taken[-1] == "new"


def test_a_late_or_repeated_word_of_the_dead_is_not_taken_however_silent_it_is() -> None:
    gate = NewestGate()
    gate.admit("a", 5, 0.0)
    gate.admit("b", 0, 1.0)
    assert [gate.admit("a", seq, 1000.0) for seq in (4, 5)] == ["retired", "retired"]
    assert gate.admit("b", 0, 1000.0) == "replayed"


def test_words_of_the_dead_that_somebody_says_again_in_their_order_are_not_taken() -> None:
    gate = NewestGate()
    for seq in range(1, 6):
        gate.admit("a", seq, seq * PERIOD_S)
    assert [gate.admit("a", seq, 1000.0) for seq in (1, 2, 3, 4, 5)] == ["stale"] * 4 + ["replayed"]
    assert gate.admit("a", 6, 1001.0) == "new"


def test_what_was_taken_is_not_taken_again_above_a_number_that_counted_on() -> None:
    gate, late_s = NewestGate(), NOW_S + 10 * PERIOD_S
    assert gate.admit("a", 3, NOW_S) == "new"
    assert [gate.admit("a", seq, late_s) for seq in (1, 2, 3)] == ["stale", "new", "stale"]


def test_what_was_taken_of_a_boot_stays_known_while_another_one_speaks() -> None:
    gate = NewestGate()
    later = [NOW_S + 10 * PERIOD_S * times for times in range(4)]
    assert [gate.admit(*one, later[0]) for one in (("a", 3), ("b", 1))] == ["new", "new"]
    assert gate.admit("a", 5, later[1]) == "new"
    assert [gate.admit("a", seq, later[2]) for seq in (2, 3)] == ["stale", "stale"]


def test_two_that_live_are_noticed_and_a_restart_is_not() -> None:
    gate = NewestGate()
    gate.admit("a", 0, 0.0)
    gate.admit("b", 0, 1.0)
    gate.admit("a", 1, 1.2)  # under way when it was replaced
    assert not gate.two_senders(2.0)
    gate.admit("b", 1, 4.0)
    gate.admit("a", 2, 4.5)
    assert gate.two_senders(4.5)
    gate.admit("b", 2, 13.0)
    assert not gate.two_senders(14.0)
