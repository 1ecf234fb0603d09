"""The life of an HTTPS process: one of several replicas, of which the holder of the Lease writes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import structlog

from services.central.leadership.leader import Leader
from shared.app import end_tasks
from shared.contracts.readiness import ServiceHealth
from shared.ports import Clock

log = structlog.get_logger()

DIED = 1
LEAVE_S = 5.0
"""Seconds of answering after SIGTERM, during which the API server may still route requests here."""


class Answering(Protocol):
    """What a process answers with."""

    @property
    def failure(self) -> str:
        """Why no request would be answered; "" if requests are."""
        ...

    async def run(self) -> None:
        """Work until cancelled."""
        ...

    async def close(self) -> None:
        """Stop answering."""
        ...


class HttpsProcess:
    """All replicas answer; the leader also runs the tasks in `leading`, by name."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        leader: Leader,
        answering: Answering,
        leading: Mapping[str, Callable[[], Awaitable[None]]] | None = None,
    ) -> None:
        self._name, self._clock, self._leader, self._leaving = name, clock, leader, False
        self.answering, self._while_leading = answering, dict(leading or {})

    def health(self) -> ServiceHealth:
        """Well while the API server may be sent here."""
        why = "ends soon" if self._leaving else self.answering.failure
        return ServiceHealth(service=self._name, ok=not why, why=why)

    async def run(self, stop: asyncio.Event) -> int:
        """Answer until `stop` is set (exit code 0) or something dies (exit code 1)."""
        stopping = asyncio.create_task(stop.wait(), name="stop")
        leading = asyncio.create_task(self._leader.run(self._lead), name=f"{self._name}-leader")
        tasks = [leading, asyncio.create_task(self.answering.run(), name=f"{self._name}-answers")]
        try:
            done, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            died = [task for task in tasks if task in done]
            for task in died:
                log.error("process.died", task=task.get_name(), exc_info=task.exception())
            if not died:
                self._leaving = True
                # Before the wait, in which another replica may lead already; its own task would acquire the lease
                # again.
                await end_tasks([leading])
                await self._leader.release()
                await self._clock.sleep(LEAVE_S)
            return DIED if died else 0
        finally:
            await end_tasks([stopping, *tasks])
            await self._leader.release()
            await self.answering.close()

    async def _lead(self) -> None:
        """Run the leader's tasks; without any, leading still permits writes, because writers check the leader before
        each write."""
        async with asyncio.TaskGroup() as tasks:
            for name, work in self._while_leading.items():
                tasks.create_task(_run(work), name=f"{self._name}-{name}")
            tasks.create_task(_for_ever(), name=f"{self._name}-leads")


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()


async def _for_ever() -> None:
    await asyncio.Event().wait()
