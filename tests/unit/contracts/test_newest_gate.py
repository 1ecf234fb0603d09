"""Which message may be used: the newest, and never one seen before."""

from hypothesis import given
from hypothesis import strategies as st

from shared.core.newest import NewestGate

messages = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 9)), max_size=60)


@given(messages)
def test_within_one_boot_the_accepted_numbers_ascend(arriving):
    gate, accepted = NewestGate(), {}
    for boot, seq in arriving:
        if gate.take(boot, seq) == "new":
            assert seq > accepted.get(boot, -1)
            accepted[boot] = seq


@given(messages)
def test_a_boot_that_was_replaced_never_speaks_again(arriving):
    gate, replaced, current = NewestGate(), set(), None
    for boot, seq in arriving:
        verdict = gate.take(boot, seq)
        assert (verdict == "retired") == (boot in replaced)
        if verdict == "new" and boot != current:
            replaced |= {current} - {None}
            current = boot


@given(messages)
def test_the_newest_is_always_the_last_one_accepted(arriving):
    gate, last = NewestGate(), (None, -1)
    for boot, seq in arriving:
        if gate.take(boot, seq) == "new":
            last = (boot, seq)
        assert (gate.boot_id, gate.seq) == last


@given(messages, st.tuples(st.sampled_from("abcdef"), st.integers(0, 9)))
def test_judging_takes_nothing(arriving, asked):
    gate = NewestGate()
    for boot, seq in arriving:
        gate.take(boot, seq)
    before = (gate.boot_id, gate.seq)
    verdict = gate.judge(*asked)
    assert (gate.boot_id, gate.seq) == before
    assert gate.take(*asked) == verdict


@given(messages)
def test_taken_twice_a_message_is_a_replay_or_older(arriving):
    gate = NewestGate()
    for boot, seq in arriving:
        gate.take(boot, seq)
        assert gate.take(boot, seq) != "new"


def test_the_verdicts_say_why():
    gate = NewestGate()
    told = [gate.take(*m) for m in (("a", 5), ("a", 5), ("a", 4), ("a", 6), ("b", 0), ("a", 7), ("b", 1))]
    assert told == ["new", "replayed", "stale", "new", "new", "retired", "new"]


def test_sixteen_restarts_are_remembered():
    gate = NewestGate()
    for boot in range(17):
        gate.take(str(boot), 0)
    assert [gate.judge(str(boot), 9) for boot in (0, 15)] == ["retired", "retired"]
