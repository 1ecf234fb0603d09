"""The maker of room in streams that refuse new messages when they are full; it names nodes that held too much."""

import structlog

from shared.contracts.bus.subjects import STREAMS
from shared.errors import SubletError
from shared.ports import Bus, Clock

log = structlog.get_logger()

NAMED_S = 3600.0
"""How long a node that flooded a stream is named."""


class StreamRoom:
    """Cheap enough to be asked often: for a stream that has room it is one request."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus, self._clock = bus, clock
        self._flooding: dict[str, float] = {}
        self._failure = ""

    async def make_room(self) -> None:
        """Make room where it is needed; a server that cannot be asked is asked again next time."""
        try:
            for spec in STREAMS:
                if spec.of_node:
                    cut = [one.node for one in await self._bus.make_room(spec) if one.node]
                    self._flooding |= dict.fromkeys(cut, self._clock.monotonic())
        except SubletError as error:
            if str(error) != self._failure:
                log.warning("streams.no_room_made", why=str(error))
            self._failure = str(error)
        else:
            self._failure = ""

    def conditions(self) -> list[dict[str, str]]:
        """The nodes that held too much of a stream within the last hour."""
        now_s = self._clock.monotonic()
        self._flooding = {node: at_s for node, at_s in self._flooding.items() if now_s - at_s < NAMED_S}
        return [
            {"type": "NodeFloodsStream", "message": f"node {node.replace('_', '.')} filled a stream beyond its share; "
             "its oldest messages there were dropped: look who works on that node"}
            for node in sorted(self._flooding)
        ]  # fmt: skip
