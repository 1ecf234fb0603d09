"""Giving up a connection ends, whatever the client of NATS waits for."""

import asyncio

import pytest

from shared.adapters.clock import SystemClock
from shared.adapters.nats import link
from shared.adapters.nats.link import Link
from shared.errors import Unavailable

NOBODY = "nats://127.0.0.1:1"


async def test_a_client_that_does_not_come_to_its_end_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(link, "GIVE_UP_S", 0.01)
    connection = Link(NOBODY, name="node/a", clock=SystemClock())
    monkeypatch.setattr(connection.client, "close", wait_for_ever)
    async with asyncio.timeout(30):
        with pytest.raises(Unavailable, match="no NATS server"):
            await connection.open(0.01)
    assert connection.closed
