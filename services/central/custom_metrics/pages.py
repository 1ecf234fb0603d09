"""Pods' own pages of metrics: those that ask for it are read every 15 seconds, side by side."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from services.central.core.custom_metrics.cluster_objects import MeteredSeen
from services.central.core.custom_metrics.figures import page_samples
from services.central.core.custom_metrics.store import MetricStore
from services.central.custom_metrics.answers import wall_ms
from services.central.custom_metrics.mirrors import MetricsMirrors
from shared import telemetry
from shared.contracts.cluster.figures import FIGURES_PERIOD_S
from shared.core.log_limit import LogLimit
from shared.errors import SubletError
from shared.ports import Clock

log = structlog.get_logger()

MOST_PAGES = 1000
"""Read of all pods together; what is beyond is left out, by namespace and name."""
AT_ONCE = 16


class PodPages:
    """Reads pages until cancelled; an unreadable page affects only its pod."""

    def __init__(
        self,
        store: MetricStore,
        mirrors: MetricsMirrors,
        read: Callable[[str], Awaitable[str]],
        clock: Clock,
        *,
        keep_s: float,
    ) -> None:
        self._store, self._mirrors, self._read, self._clock = store, mirrors, read, clock
        self._keep_s, self._turns = keep_s, asyncio.Semaphore(AT_ONCE)
        self._log_limit = LogLimit()

    async def run(self) -> None:
        """Read all pages, wait, and repeat."""
        while True:
            await self.read_all()
            await self._clock.sleep(FIGURES_PERIOD_S)

    async def read_all(self) -> None:
        """Read every page once."""
        pods = self._mirrors.pages()
        telemetry.METRICS_PAGES_LEFT_OUT.set(max(0, len(pods) - MOST_PAGES))
        async with asyncio.TaskGroup() as tasks:
            for pod in pods[:MOST_PAGES]:
                tasks.create_task(self._look_at(pod))

    async def _look_at(self, pod: MeteredSeen) -> None:
        async with self._turns:
            try:
                text = await self._read(pod.page)
            except SubletError as error:
                telemetry.METRICS_DROPPED.labels("page").inc()
                held_back = self._log_limit.may_say("page", self._clock.monotonic())
                if held_back is not None:
                    log.warning("metrics_page.not_read", page=pod.page, why=str(error), held_back=held_back)
                return
            now_ms = wall_ms(self._clock)
            samples, unread = page_samples(text, pod.about, now_ms, self._keep_s)
            _, dropped = self._store.insert(samples, now_ms)
            for reason, count in (*unread.items(), *dropped.items()):
                telemetry.METRICS_DROPPED.labels(reason).inc(count)
