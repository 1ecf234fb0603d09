"""The life of a replica of the metrics API: mirrors, figures, the server, and when others may be sent to it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from services.central.custom_metrics.intake import FiguresIntake
from services.central.custom_metrics.mirrors import MetricsMirrors
from services.central.custom_metrics.pages import PodPages
from services.central.serving.serving import Serving
from shared.contracts.cluster.figures import FIGURES_PERIOD_S
from shared.ports import Bus, Clock

WARM_S = FIGURES_PERIOD_S + 5.0
"""Time after which every node has published. A replica that answered earlier would tell the autoscaler that pods
have no figures. Afterwards it answers even without figures, because an unavailable API stops more than scaling."""


@dataclass(frozen=True, slots=True)
class MetricsInputs:
    """Where samples come from: nodes over the bus, and pods' own pages; None: these are not asked for."""

    figures: FiguresIntake
    bus: Callable[[], Awaitable[Bus]]
    pages: PodPages | None = None


class MetricsController:
    """Hears, stores, answers."""

    def __init__(self, mirrors: MetricsMirrors, inputs: MetricsInputs, serving: Serving, clock: Clock) -> None:
        self._mirrors, self._inputs, self.serving, self._clock = mirrors, inputs, serving, clock
        self._warm_at_s = clock.monotonic() + WARM_S

    @property
    def failure(self) -> str:
        """Why requests should not be sent here; "" if they may."""
        if self.serving.failure:
            return self.serving.failure
        left_s = self._warm_at_s - self._clock.monotonic()
        return f"nodes are heard for the first time, {left_s:.0f} s more" if left_s > 0 else ""

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for mirror in self._mirrors.every:
                tasks.create_task(mirror.run(), name="metrics-api-mirror")
            tasks.create_task(self._hear(), name="metrics-api-bus")
            tasks.create_task(self._inputs.figures.collect(), name="metrics-api-store")
            if self._inputs.pages is not None:
                tasks.create_task(self._inputs.pages.run(), name="metrics-api-pages")
            tasks.create_task(self.serving.run(), name="metrics-api-server")

    async def close(self) -> None:
        """Stop answering."""
        await self.serving.close()

    async def _hear(self) -> None:
        await self._inputs.figures.listen(await self._inputs.bus())
