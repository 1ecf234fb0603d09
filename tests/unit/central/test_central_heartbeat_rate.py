"""How often a node is listened to, as a law: whatever one does, it gets its share and takes nothing of the others'."""

from hypothesis import given
from hypothesis import strategies as st

from services.central.core.heartbeats.heartbeat_rate import HEARTBEAT_BURST, HEARTBEATS_PER_S, NodeRate

GAPS = st.lists(st.floats(0, 5, allow_nan=False), min_size=1, max_size=200)


@given(GAPS)
def test_a_node_gets_its_burst_and_its_rate_and_no_more(gaps: list[float]) -> None:
    rate, now_s, taken = NodeRate(HEARTBEATS_PER_S, HEARTBEAT_BURST), 100.0, 0
    for gap in gaps:
        now_s += gap
        taken += rate.admit("n1", now_s)
    assert taken <= HEARTBEAT_BURST + HEARTBEATS_PER_S * (now_s - 100.0) + 1


@given(GAPS, st.integers(1, 50))
def test_a_node_that_beats_as_agents_do_is_always_heard_however_much_another_sends(
    gaps: list[float], flood: int
) -> None:
    rate, now_s = NodeRate(HEARTBEATS_PER_S, HEARTBEAT_BURST), 0.0
    for _ in gaps:
        now_s += 1 / HEARTBEATS_PER_S
        for _ in range(flood):
            rate.admit("hostile", now_s)
        assert rate.admit("honest", now_s)


def test_who_is_not_kept_has_a_full_bucket_again() -> None:
    rate = NodeRate(1.0, 2)
    assert [rate.admit("n1", 0.0) for _ in range(3)] == [True, True, False]
    rate.retain({"n2"})
    assert rate.admit("n1", 0.0)
