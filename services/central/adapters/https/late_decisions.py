"""The `DecisionLog` of a process whose bus connects late: earlier decisions are not published."""

from services.central.adapters.decisions import BusDecisions
from services.central.adapters.https.late_bus import LateBus
from shared.contracts.cluster.decision import Decided


class LateDecisions:
    """Publishes decisions once the bus is connected. Its `run` must be started."""

    def __init__(self, bus: LateBus, *, service: str) -> None:
        self._bus, self._service = bus, service
        self._decisions: BusDecisions | None = None

    def say(self, decided: Decided) -> None:
        """See the port."""
        if self._decisions is not None:
            self._decisions.say(decided)

    async def run(self) -> None:
        """Store decisions until cancelled."""
        self._decisions = BusDecisions(await self._bus.wire(self._service))
        await self._decisions.run()
