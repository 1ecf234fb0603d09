"""Pods that could not be evicted: each time they are spared for twice as long, and this is forgotten in the end."""

from services.evictor.act.backoff import BASE_S, CAP_S, FORGET_S, Backoff


def test_a_pod_is_spared_for_twice_as_long_each_time_and_another_one_is_not() -> None:
    backoff, now_s = Backoff(), 0.0
    for pause_s in (BASE_S, 2 * BASE_S, 4 * BASE_S, 8 * BASE_S, CAP_S, CAP_S):
        backoff.add("a", now_s)
        assert backoff.waiting(now_s + pause_s - 0.1) == {"a"}
        assert backoff.waiting(now_s + pause_s) == set()
        now_s += pause_s
    backoff.add("b", now_s)
    assert backoff.waiting(now_s + BASE_S - 0.1) == {"b"}


def test_what_failed_is_remembered_for_a_while_after_its_pause_and_not_for_ever() -> None:
    backoff = Backoff()
    backoff.add("a", 0.0)
    backoff.forget(BASE_S + FORGET_S - 0.1)
    backoff.add("a", 1000.0)
    assert backoff.waiting(1000.0 + 2 * BASE_S - 0.1) == {"a"}
    backoff.forget(1000.0 + 2 * BASE_S + FORGET_S)
    backoff.add("a", 2000.0)
    assert backoff.waiting(2000.0 + BASE_S) == set()
