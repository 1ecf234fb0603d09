"""An event loop on which hours pass in minutes beside real programs, whose time is this machine's."""

import asyncio
import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from aiohttp import ClientTimeout

from shared.adapters.clock import LoopClock
from shared.adapters.kube import client as kube_client
from shared.adapters.kube.client import CALL_S, Document, Kube, KubeRequest

SPEED = 12.0
"""Seconds that pass on the loop while one passes here, at first."""
LONGEST_S = 0.02
"""Of this machine's time, that counts from look to look."""


class Haste(selectors.DefaultSelector):
    """Waits for a part of the time that it is asked for, and then says that all of it has passed.

    Time passes here alone, and not much of it in one look: while this machine is busy it stands still, or the services
    would look late.
    """

    def __init__(self) -> None:
        super().__init__()
        self.speed, self.now_s, self._looked_s = SPEED, 0.0, time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(LONGEST_S if timeout is None else min(LONGEST_S, timeout / self.speed))
        before_s, self._looked_s = self._looked_s, time.monotonic()
        self.now_s += self.speed * min(LONGEST_S, self._looked_s - before_s)
        return found


class FastLoop(asyncio.SelectorEventLoop):
    """All that waits here waits for less."""

    def __init__(self) -> None:
        self.haste = Haste()
        super().__init__(self.haste)

    def time(self) -> float:
        return self.haste.now_s


def haste() -> Haste:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, FastLoop)
    return loop.haste


class NodeClock(LoopClock):
    """The time of the nodes; for people it is now."""

    def wall(self) -> datetime:
        return datetime.now(UTC)


class PatientKube(Kube):
    """A call may take as long as ever."""

    async def send(self, request: KubeRequest) -> Document:
        limit = request.limit
        patient = ClientTimeout(total=(limit.total or CALL_S) * SPEED, connect=limit.connect)
        return await super().send(replace(request, limit=patient))


@contextmanager
def fast_loop() -> Iterator[asyncio.Runner]:
    """What runs here lives fast, and has patience with the API server."""
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=FastLoop) as runner:
        patch.setattr(kube_client, "Kube", PatientKube)
        for limit in ("CONNECT_S", "SILENCE_S"):
            patch.setattr(kube_client, limit, getattr(kube_client, limit) * SPEED)
        yield runner
