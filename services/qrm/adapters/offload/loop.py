"""The offload loop returns memory of pods: idle memory if that is enabled, page cache when memory runs short."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from services.qrm.adapters.offload.offloader import CgroupOffloader, ReclaimResult
from services.qrm.settings import OffloadSettings
from shared import telemetry
from shared.contracts.advice import CacheDrop
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import Layout
from shared.ports import Clock

log = structlog.get_logger()

IDLE_S = 10.0
"""Seconds between two checks whether it was enabled."""


@dataclass(slots=True)
class OffloadLoop:
    """Works in threads, for the kernel may take long; the pods and the settings are asked for in every round."""

    offloader: CgroupOffloader
    layout: Layout
    clock: Clock
    _drops: Sequence[CacheDrop] = ()
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)

    def drop(self, drops: Sequence[CacheDrop]) -> None:
        """Page cache that must go; what was asked for before and has not been done is forgotten."""
        self._drops = drops
        if drops:
            self._wanted.set()

    async def run_drops(self, pods: Callable[[], Sequence[Pod]]) -> None:
        """Drop page cache of reclaimed pods on request, until cancelled."""
        while True:
            await self._wanted.wait()
            # Before the work, not after: an order that arrives while this one is carried out starts another turn.
            self._wanted.clear()
            # Asked now: the pod may have ended, or changed its class, since the advice was computed.
            groups = {pod.uid: self.layout.pod_group(pod) for pod in pods() if pod.qos == "reclaimed_cores"}
            for drop in self._drops:
                if drop.uid in groups:
                    done = await asyncio.to_thread(self.offloader.reclaim, groups[drop.uid], drop.bytes)
                    _report(groups[drop.uid], done, "memory runs short")

    async def run(self, pods: Callable[[], Sequence[Pod]], settings: Callable[[], OffloadSettings | None]) -> None:
        """Offload idle memory until cancelled; do nothing while there are no settings."""
        while True:
            now = settings()
            await self.clock.sleep(IDLE_S if now is None else now.period_s)
            if now is not None:
                await self._round(pods(), now)

    async def _round(self, pods: Sequence[Pod], settings: OffloadSettings) -> None:
        groups = [self.layout.pod_group(pod) for pod in pods if pod.qos in settings.classes]
        for group in groups:
            decision, done = await asyncio.to_thread(self.offloader.step, group, settings.rules, self.clock.monotonic())
            if done.asked_bytes:
                _report(group, done, decision.why)
        self.offloader.forget(frozenset(groups))


def _report(group: str, done: ReclaimResult, why: str) -> None:
    telemetry.OFFLOADED_BYTES.labels(done.status).inc(done.given_bytes)
    log.info("memory.given_back", group=group, asked=done.asked_bytes, given=done.given_bytes, status=done.status,
             why=done.why or why)  # fmt: skip
