"""The keeper of the streams and of the bucket: makes them, makes them again, and makes room for new messages."""

from dataclasses import replace

import structlog

from shared.contracts.bus.subjects import CONFIG_BUCKET, STREAMS
from shared.errors import SubletError
from shared.ports import Bus, Clock

log = structlog.get_logger()

NAMED_S = 3600.0
"""How long a node that flooded a stream is named."""


class FactStreams:
    """The streams of facts and the bucket of configuration, as a server has them."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus, self._clock = bus, clock
        self._flooding: dict[str, float] = {}
        self._no_room = ""
        self.failure = "streams and bucket are not made yet"
        """Why they are not there; "" while they are."""

    async def ensure(self, replicas: int | None) -> bool:
        """Create what is missing, even after a server has lost it; return whether everything exists."""
        try:
            for spec in STREAMS:
                await self._bus.ensure_stream(replace(spec, replicas=replicas))
            await self._bus.ensure_bucket(CONFIG_BUCKET, replicas=replicas)
        except SubletError as error:
            if not self.failure or str(error) != self.failure:
                log.warning("streams.not_made", why=str(error))
            self.failure = str(error)
            return False
        if self.failure:
            log.info("streams.made", streams=[spec.name for spec in STREAMS], bucket=CONFIG_BUCKET)
        self.failure = ""
        return True

    async def make_room(self) -> None:
        """Drop the oldest messages of nodes that hold more than their share, where a stream is nearly full.

        The streams refuse what is new when they are full, so that no fact is lost unseen. For a stream that has room
        this is one request. A server that cannot be asked is asked again next time.
        """
        try:
            for spec in STREAMS:
                if spec.of_node:
                    cut = [one.node for one in await self._bus.make_room(spec) if one.node]
                    self._flooding |= dict.fromkeys(cut, self._clock.monotonic())
        except SubletError as error:
            if str(error) != self._no_room:
                log.warning("streams.no_room_made", why=str(error))
            self._no_room = str(error)
        else:
            self._no_room = ""

    def conditions(self) -> list[dict[str, str]]:
        """The nodes that held too much of a stream within the last hour."""
        now_s = self._clock.monotonic()
        self._flooding = {node: at_s for node, at_s in self._flooding.items() if now_s - at_s < NAMED_S}
        return [
            {"type": "NodeFloodsStream", "message": f"node {node.replace('_', '.')} filled a stream beyond its share; "
             "its oldest messages there were dropped: look who works on that node"}
            for node in sorted(self._flooding)
        ]  # fmt: skip
