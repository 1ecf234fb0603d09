"""Store a fact durably: the same message id, again and again, until it is acknowledged or the time is spent."""

import itertools
from collections.abc import Awaitable, Callable

from shared import telemetry
from shared.core.backoff import delay_s
from shared.errors import NotStored, Unavailable
from shared.ports import Clock, Stored

TRY_S = 2.0
"""Longest wait for one acknowledgement; a stream without a leader answers nothing at all."""
LAST_TRY_S = 0.1
"""Time that even the last try gets."""
BASE_S, CAP_S = 0.1, 1.0


async def until_stored(
    store: Callable[[float], Awaitable[Stored]], *, clock: Clock, budget_s: float, what: str, roll: Callable[[], float]
) -> Stored:
    """Call `store(timeout_s)` until it returns; it raises Unavailable for a try that may be repeated.

    The default budget of the port outlives the loss of a stream leader (docs/facts/nats.md#publishing-facts).

    Raises:
        NotStored: the budget is spent, or `store` raised it because no repetition can help.
        Conflict: as `store` raised it.
    """
    deadline = clock.monotonic() + budget_s
    for attempt in itertools.count():
        try:
            return await store(max(LAST_TRY_S, min(TRY_S, deadline - clock.monotonic())))
        except NotStored:
            # A subclass of Unavailable, so it comes first: it is raised for what no repetition can cure (closed, too
            # large).
            raise
        except Unavailable as error:
            why = error
        left = deadline - clock.monotonic()
        if left <= 0:
            raise NotStored(
                f"{what}: no acknowledgement in {budget_s:g} s and {attempt + 1} tries, last: {why}", reason="no_ack"
            ) from why
        telemetry.STORE_RETRIES.inc()
        await clock.sleep(min(left, delay_s(attempt, base_s=BASE_S, cap_s=CAP_S, roll=roll())))
    raise AssertionError("unreachable")  # pragma: no cover - itertools.count never ends
