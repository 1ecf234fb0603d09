"""The pause before the next try."""

from hypothesis import given
from hypothesis import strategies as st

from shared.core.backoff import delay_s

rolls = st.floats(0, 1)
attempts = st.integers(0, 10_000)


@given(attempts, rolls)
def test_a_pause_is_never_longer_than_the_cap_nor_shorter_than_half_the_base(attempt: int, roll: float) -> None:
    assert 0.05 <= delay_s(attempt, base_s=0.1, cap_s=5.0, roll=roll) <= 5.0


@given(attempts, rolls)
def test_pauses_never_shrink(attempt: int, roll: float) -> None:
    assert delay_s(attempt, base_s=0.1, cap_s=5.0, roll=roll) <= delay_s(attempt + 1, base_s=0.1, cap_s=5.0, roll=roll)


def test_pauses_double_up_to_the_cap() -> None:
    assert [delay_s(n, base_s=0.1, cap_s=1.0, roll=1.0) for n in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_two_clients_with_different_luck_do_not_come_back_together() -> None:
    assert delay_s(5, base_s=0.1, cap_s=5.0, roll=0.0) != delay_s(5, base_s=0.1, cap_s=5.0, roll=1.0)
