"""Publish samples, each as whole as its readers read it; after a refusal of the bus the next one is shorter."""

import structlog

from services.metrics.core.sample.fitting import FittedSample, fitted
from shared import telemetry
from shared.contracts.envelope import MAX_MESSAGE_BYTES
from shared.contracts.sample import NodeSample
from shared.wire import Wire

log = structlog.get_logger()

LEAST_BYTES = 32_768
"""A sample is never made shorter than this: a bus that takes less is of no use."""


class SamplePublisher:
    """Publishes samples. `failure` says why readers do not have the newest one, or not all of it; "" if they do."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._most_bytes = MAX_MESSAGE_BYTES
        self._shortened = 0
        self.failure = ""

    async def publish(self, sample: NodeSample) -> None:
        """Publish a sample; pods that lost detail for it are counted, pods that it does not name are a failure."""
        fit = fitted(sample, self._most_bytes)
        telemetry.SAMPLE_PODS_SHORTENED.set(fit.shortened)
        if bool(fit.shortened) != bool(self._shortened):
            log.warning("sample.shortened", pods=fit.shortened, of=len(sample.pods), bytes=len(fit.payload))
        self._shortened = fit.shortened
        sent = await self._wire.publish(fit.sample, payload=fit.payload)
        self._say(self._left_out(fit) if sent else self._refused(len(fit.payload)))

    def _refused(self, size: int) -> str:
        # No refusal of this size: a limit that was learned from one server must not outlive it.
        if not self._wire.bus.connected:
            self._most_bytes = MAX_MESSAGE_BYTES  # the next server may take more
            return "the bus is away: the sample is not published"
        # Halved, so that a size that is taken is found within a few samples.
        self._most_bytes = max(LEAST_BYTES, min(self._most_bytes, size) // 2)
        return f"the bus refuses a sample of {size} bytes; the next one has at most {self._most_bytes}"

    def _left_out(self, fit: FittedSample) -> str:
        if not fit.left_out:
            return ""
        return f"the sample has {len(fit.payload)} bytes, the most that are read, without {fit.left_out} pods"

    def _say(self, failure: str) -> None:
        if failure != self.failure:
            log.warning("sample.not_whole", why=failure) if failure else log.info("sample.whole", after=self.failure)
        self.failure = failure
