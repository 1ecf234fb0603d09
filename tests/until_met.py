"""Conditions of other processes: waited for within a bound, and never for a time."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from slow_machines import patience_s

T = TypeVar("T")

LOOK_S = 0.05
"""Between two questions to another process."""


async def until_met(condition: Callable[[], Awaitable[object]], limit_s: float) -> None:
    """Wait until a condition of another process is met.

    Raises:
        TimeoutError: it is not within the bound.
    """
    async with asyncio.timeout(patience_s(limit_s)):
        while not await condition():
            await asyncio.sleep(LOOK_S)


async def until_found(
    look: Callable[[], Awaitable[T]],
    holds: Callable[[T], object],
    limit_s: float,
    *,
    not_yet: tuple[type[Exception], ...] = (),
) -> T:
    """Look until something holds of what is found, and return that; errors of `not_yet` count as nothing found.

    Raises:
        AssertionError: it does not hold within the bound; says what was seen last.
    """
    found: T | str = "nothing"
    try:
        async with asyncio.timeout(patience_s(limit_s)):
            while True:
                with contextlib.suppress(*not_yet):
                    found = await look()
                    if holds(found):
                        return found
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise AssertionError(f"not within {patience_s(limit_s):g} s; last seen: {found}") from None
