"""Offloading at work: every few seconds, for each pod's cgroup of the classes that take part, one bounded step."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from services.qrm.offload import Offloader
from services.qrm.settings import OffloadSettings
from shared import telemetry
from shared.contracts.pod import Pod
from shared.core.layout import Layout
from shared.ports import Clock

log = structlog.get_logger()

IDLE_S = 10.0
"""How often is looked whether it has been switched on."""


@dataclass(frozen=True, slots=True)
class Offloading:
    """`pods` gives those that run now; `settings` how they give memory back, None where nothing may be done."""

    offloader: Offloader
    layout: Layout
    clock: Clock
    pods: Callable[[], Sequence[Pod]]
    settings: Callable[[], OffloadSettings | None]

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            settings = self.settings()
            await self.clock.sleep(IDLE_S if settings is None else settings.period_s)
            if settings is not None:
                await self.round(settings)

    async def round(self, settings: OffloadSettings) -> None:
        """One step for each group; the kernel works in a thread of its own meanwhile."""
        groups = [self.layout.pod_group(pod) for pod in self.pods() if pod.qos in settings.classes]
        for group in groups:
            decision, done = await asyncio.to_thread(self.offloader.step, group, settings.rules, self.clock.monotonic())
            if done.asked_bytes:
                telemetry.OFFLOADED_BYTES.labels(done.status).inc(done.given_bytes)
                log.info("memory.offloaded", group=group, asked=done.asked_bytes, given=done.given_bytes,
                         status=done.status, why=done.why or decision.why)  # fmt: skip
        self.offloader.forget(frozenset(groups))
