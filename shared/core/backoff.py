"""A backoff grows with each attempt, is capped, and is randomized so that many senders do not return at once."""

MAX_DOUBLINGS = 16  # 2^16 times any base is above every cap in use


def delay_s(attempt: int, *, base_s: float, cap_s: float, roll: float) -> float:
    """Return the seconds before attempt number `attempt` (0 is the first repetition).

    Doubles from `base_s` up to `cap_s`; `roll`, from 0 to 1, picks a point in the upper half of that span, so that a
    thousand clients of one lost server spread out and none of them returns at once
    (docs/facts/nats.md#the-python-client).
    """
    span = min(cap_s, base_s * float(1 << min(attempt, MAX_DOUBLINGS)))
    return span * (0.5 + 0.5 * roll)
