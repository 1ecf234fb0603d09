"""Runs passes of a controller: on a change, when something is due, and again after a failure."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from shared.errors import SubletError
from shared.ports import Clock

log = structlog.get_logger()

RETRY_S: Final = 5.0
SETTLE_S: Final = 0.2
"""How long changes are collected for one pass."""


class Passes:
    """Calls `reconcile`, which must be able to start again at any time; `name` identifies it in the log."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        changed: asyncio.Event,
        reconcile: Callable[[], Awaitable[None]],
        due_in_s: Callable[[], float],
    ) -> None:
        """`due_in_s`: when the next pass comes without any change."""
        self._name, self._clock, self._changed = name, clock, changed
        self._reconcile, self._due_in_s = reconcile, due_in_s
        self.failure = ""
        """Why the newest pass failed; "" after a good one."""

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self._changed.clear()
            try:
                await self._reconcile()
            except SubletError as error:
                if str(error) != self.failure:
                    log.warning("pass.failed", controller=self._name, why=str(error))
                self.failure = str(error)
                await self._clock.sleep(RETRY_S)
            else:
                self.failure = ""
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._due_in_s()):
                        await self._changed.wait()
            await self._clock.sleep(SETTLE_S)
