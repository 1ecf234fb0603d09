"""The intake of the metrics API: what nodes say of themselves and their pods, until it is too old."""

from services.central.core.custom_metrics.figures import figure_samples
from services.central.core.custom_metrics.store import MetricStore
from services.central.custom_metrics.answers import wall_ms
from services.central.custom_metrics.mirrors import MetricsMirrors
from services.central.node_messages import MessageBounds, NodeMessages
from shared import telemetry
from shared.contracts.cluster.figures import FIGURES_PERIOD_S, MAX_FIGURES_BYTES, PodFigures
from shared.ports import Bus, Clock

SERVICE = "metrics-api"
BOUNDS = MessageBounds(MAX_FIGURES_BYTES, FIGURES_PERIOD_S, per_s=0.2, burst=4)
COLLECT_S = 10.0
"""Between two looks for samples that are too old."""


class FiguresIntake:
    """Receives every node's figures, so that each replica can answer by itself."""

    def __init__(self, store: MetricStore, mirrors: MetricsMirrors, clock: Clock) -> None:
        self._store, self._mirrors, self._clock = store, mirrors, clock
        self._messages = NodeMessages(PodFigures, clock, BOUNDS, self.receive, service=SERVICE)
        self.heard_s: float | None = None
        """When the newest figures came, by the monotonic clock; None: none ever did."""

    async def listen(self, bus: Bus) -> None:
        """Hear all nodes from now on."""
        await self._messages.listen(bus)

    def receive(self, figures: PodFigures, now_s: float) -> None:
        """Store the figures of one node."""
        self.heard_s = now_s
        now_ms = wall_ms(self._clock)
        _, dropped = self._store.insert(figure_samples(figures, now_ms, self._mirrors.seen), now_ms)
        for reason, count in dropped.items():
            telemetry.METRICS_DROPPED.labels(reason).inc(count)

    async def collect(self) -> None:
        """Remove what is too old, for ever; between two metrics others have a turn."""
        while True:
            await self._clock.sleep(COLLECT_S)
            for _table in self._store.collect(wall_ms(self._clock)):
                await self._clock.sleep(0)
            telemetry.METRICS_SERIES.set(self._store.series)
            telemetry.METRICS_SAMPLES.set(self._store.samples)
            if self.heard_s is not None:
                telemetry.INPUT_AGE.labels(SERVICE, PodFigures.kind).set(self._clock.monotonic() - self.heard_s)
