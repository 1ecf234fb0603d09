"""Conditions of other processes: waited for within a bound, and never for a time."""

import asyncio
from collections.abc import Awaitable, Callable

LOOK_S = 0.05
"""Between two questions to another process."""


async def until_met(condition: Callable[[], Awaitable[object]], limit_s: float) -> None:
    """Wait until a condition of another process is met.

    Raises:
        TimeoutError: it is not within the bound.
    """
    async with asyncio.timeout(limit_s):
        while not await condition():
            await asyncio.sleep(LOOK_S)
