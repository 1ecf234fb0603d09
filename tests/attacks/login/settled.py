"""Conditions of servers that vote: waited for within a bound, and never for a time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from shared.adapters.nats.bus import NatsBus
from shared.contracts.bus.subjects import CONFIG_BUCKET, STREAMS
from shared.errors import Unavailable

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


async def make_streams(bus: NatsBus, replicas: int) -> None:
    """Make streams and bucket, with a first configuration, as soon as the servers agree on who leads each."""

    async def made() -> bool:
        try:
            for spec in STREAMS:
                await bus.ensure_stream(replace(spec, replicas=replicas))
            await bus.ensure_bucket(CONFIG_BUCKET, replicas=replicas)
            await bus.put(CONFIG_BUCKET, "global", b"{}")
        except Unavailable:
            return False
        return True

    await until_met(made, limit_s=60)
