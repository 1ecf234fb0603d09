"""Runs passes of a controller: on a change, when something is due, and again after a failure."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from shared.errors import SubletError
from shared.ports import Clock

log = structlog.get_logger()

RETRY_S: Final = 5.0
SETTLE_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class PassSchedule:
    """When passes come; all times in seconds."""

    due_in_s: Callable[[], float]
    """When the next pass comes without any change."""
    settle_s: float = SETTLE_S
    """How long changes are collected for one pass: they come in bursts (a rollout, a resync)."""
    retry_s: float = RETRY_S
    rest_per_pass: float = 0.0
    """Seconds of rest for each second that a pass took. In a large cluster something changes all the time, and a
    controller whose passes are long would leave nothing to the others."""
    rest_limit_s: float = float("inf")


class Passes:
    """Calls `reconcile`, which must be able to start again at any time; `name` identifies it in the log."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        changed: asyncio.Event,
        reconcile: Callable[[], Awaitable[None]],
        schedule: PassSchedule,
    ) -> None:
        self._name, self._clock, self._changed = name, clock, changed
        self._reconcile, self._schedule = reconcile, schedule
        self.failure = "no pass yet"
        """Why the newest pass failed; "" after a good one."""

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            # Before the pass reads anything: what changes during the pass leads to another one.
            self._changed.clear()
            began_s = self._clock.monotonic()
            try:
                await self._reconcile()
            except SubletError as error:
                if str(error) != self.failure:
                    log.warning("pass.failed", controller=self._name, why=str(error))
                self.failure = str(error)
            else:
                self.failure = ""
            took_s = self._clock.monotonic() - began_s
            if self.failure:
                await self._clock.sleep(self._schedule.retry_s)
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._schedule.due_in_s()):
                        await self._changed.wait()
            rest_s = max(self._schedule.settle_s, self._schedule.rest_per_pass * took_s)
            await self._clock.sleep(min(rest_s, self._schedule.rest_limit_s))
