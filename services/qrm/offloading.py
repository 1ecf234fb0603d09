"""Memory given back by pods: idle memory step by step where that is switched on, page cache when it runs short."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from services.qrm.adapters.kernel.offloader import Offloader, Reclaimed
from services.qrm.settings import OffloadSettings
from shared import telemetry
from shared.contracts.advice import CacheDrop
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import Layout
from shared.ports import Clock

log = structlog.get_logger()

IDLE_S = 10.0
"""How often is looked whether it has been switched on."""


@dataclass(slots=True)
class Offloading:
    """`pods` gives those that run now; `settings` how they give memory back, None where nothing may be done."""

    offloader: Offloader
    layout: Layout
    clock: Clock
    pods: Callable[[], Sequence[Pod]]
    settings: Callable[[], OffloadSettings | None]
    _drops: Sequence[CacheDrop] = ()
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)

    def drop(self, drops: Sequence[CacheDrop]) -> None:
        """Page cache that must go; what was asked for before and has not been done is forgotten."""
        self._drops = drops
        if drops:
            self._wanted.set()

    async def run_drops(self) -> None:
        """Drop page cache as it is asked for, until cancelled; the kernel works in a thread of its own."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            groups = {pod.uid: self.layout.pod_group(pod) for pod in self.pods() if pod.qos == "reclaimed_cores"}
            for drop in self._drops:
                if drop.uid in groups:
                    done = await asyncio.to_thread(self.offloader.reclaim, groups[drop.uid], drop.bytes)
                    _told(groups[drop.uid], done, "memory runs short")

    async def run(self) -> None:
        """Offload until cancelled."""
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
                _told(group, done, decision.why)
        self.offloader.forget(frozenset(groups))


def _told(group: str, done: Reclaimed, why: str) -> None:
    telemetry.OFFLOADED_BYTES.labels(done.status).inc(done.given_bytes)
    log.info("memory.given_back", group=group, asked=done.asked_bytes, given=done.given_bytes, status=done.status,
             why=done.why or why)  # fmt: skip
