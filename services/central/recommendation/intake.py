"""Receives figures: only what nodes report about their own pods goes into the ledger."""

from collections.abc import Callable, Mapping
from itertools import islice

from services.central.core.recommendation.ledger import UsageLedger
from services.central.core.recommendation.objects.workloads import WorkloadPod
from services.central.core.recommendation.readings import container_readings
from services.central.node_messages import MessageBounds, NodeMessages
from shared.contracts.cluster.figures import FIGURES_PERIOD_S, MAX_FIGURES_BYTES, PodFigures
from shared.ports import Bus, Clock, Subscription

NAME = "recommendation"
BOUNDS = MessageBounds(max_bytes=MAX_FIGURES_BYTES, period_s=FIGURES_PERIOD_S, per_s=1.0, burst=10)
AHEAD_S = 60.0
"""A sample from further in the future would make all others old."""
OLD_S = 600.0
MAX_NAMED = 100


class FigureIntake:
    """Takes PodFigures; `pods` are those of the API server by UID, for a node could tell of pods that are not its."""

    def __init__(self, ledger: UsageLedger, pods: Callable[[], Mapping[str, WorkloadPod]], clock: Clock) -> None:
        self._ledger, self._pods, self._clock = ledger, pods, clock
        self._messages = NodeMessages(PodFigures, clock, BOUNDS, self.receive, service=NAME)
        self._wrong_clocks: dict[str, str] = {}

    @property
    def wrong_clocks(self) -> Mapping[str, str]:
        """Nodes whose figures are not taken for their time, and why; no more than can be named."""
        return dict(islice(sorted(self._wrong_clocks.items()), MAX_NAMED))

    async def listen(self, bus: Bus) -> Subscription:
        """Begin to hear nodes."""
        return await self._messages.listen(bus)

    def receive(self, figures: PodFigures, _heard_at_s: float) -> None:
        """Take one message."""
        at_s = figures.measured_at.timestamp()
        age_s = self._clock.wall().timestamp() - at_s
        if not -AHEAD_S <= age_s <= OLD_S:
            side = "in the future" if age_s < 0 else "ago"
            said = f"its figures are of {abs(age_s):.0f} s {side}: set its clock"
            if figures.node in self._wrong_clocks or len(self._wrong_clocks) < MAX_NAMED:
                self._wrong_clocks[figures.node] = said
            return
        self._wrong_clocks.pop(figures.node, None)
        pods = self._pods()
        for reading in container_readings(figures.pods, figures.containers):
            pod = pods.get(reading.pod_uid)
            if pod is not None and pod.node == figures.node:
                self._ledger.see(pod, reading.container, at_s, reading.used)
