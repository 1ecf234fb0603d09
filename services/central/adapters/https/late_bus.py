"""The bus of a process that also answers without it: only callers that need the bus wait for it."""

import asyncio
import contextlib

import structlog

from shared.adapters.nats.bus import connect
from shared.errors import SubletError, Unavailable
from shared.ports import Bus, Clock
from shared.settings import CommonSettings
from shared.wire import Wire

log = structlog.get_logger()

RETRY_S = 5.0


class LateBus:
    """One connection, made when it is first asked for."""

    def __init__(self, common: CommonSettings, clock: Clock, *, name: str) -> None:
        self._common, self._clock, self._name = common, clock, name
        self._bus: Bus | None = None
        self._connecting = asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Whether messages come and go now."""
        return self._bus is not None and self._bus.connected

    async def get(self) -> Bus:
        """Return the bus as soon as it is connected."""
        async with self._connecting:
            while self._bus is None:
                try:
                    self._bus = await connect(
                        self._common.nats_url,
                        name=f"{self._name}/{self._common.node}",
                        connect_timeout_s=self._common.connect_timeout_s,
                        clock=self._clock,
                    )
                except Unavailable as error:
                    log.warning("bus.not_there", why=str(error))
                    await self._clock.sleep(RETRY_S)
            return self._bus

    async def wire(self, service: str) -> Wire:
        """The same for typed messages, under a service's name."""
        return Wire(await self.get(), self._clock, node=self._common.node, service=service)

    async def close(self) -> None:
        """Leave it, where it was ever there."""
        if self._bus is not None:
            with contextlib.suppress(SubletError):
                await self._bus.drain()
