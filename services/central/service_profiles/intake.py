"""Receives figures: what each node reports about its own pods, for services that have a profile."""

from collections.abc import Callable, Mapping
from typing import Final

from services.central.core.recommendation.objects.workloads import WorkloadPod
from services.central.core.service_profiles.standing import PodStanding
from services.central.node_messages import MessageBounds, NodeMessages
from shared.contracts.cluster.figures import CONTAINER, FIGURES_PERIOD_S, MAX_FIGURES_BYTES, PodFigures
from shared.ports import Bus, Clock, Subscription

NAME: Final = "service_profiles"
BOUNDS: Final = MessageBounds(max_bytes=MAX_FIGURES_BYTES, period_s=FIGURES_PERIOD_S, per_s=1.0, burst=10)
AHEAD_S: Final = 60.0
"""Figures from further in the future are of a node whose clock is wrong."""
_RESOURCES: Final = {"container_cpu_usage": "cpu", "container_memory_usage": "memory"}


class StandingIntake:
    """Keeps the newest of each pod; `pods` are those of the API server by UID, for a node could tell of others'."""

    def __init__(self, pods: Callable[[], Mapping[str, WorkloadPod]], clock: Clock) -> None:
        self._pods, self._clock = pods, clock
        self._messages = NodeMessages(PodFigures, clock, BOUNDS, self.receive, service=NAME)
        self.standings: dict[str, PodStanding] = {}

    async def listen(self, bus: Bus) -> Subscription:
        """Begin to hear nodes."""
        return await self._messages.listen(bus)

    def retain(self, uids: Mapping[str, object]) -> None:
        """Forget pods that are gone."""
        self.standings = {uid: one for uid, one in self.standings.items() if uid in uids}

    def receive(self, figures: PodFigures, _heard_at_s: float) -> None:
        """Take one message."""
        at_s = figures.measured_at.timestamp()
        if at_s - self._clock.wall().timestamp() > AHEAD_S:
            return
        known, places = self._pods(), {}
        for place, uid in enumerate(figures.pods.uids):
            pod = known.get(uid)
            if pod is not None and pod.descriptor and pod.node == figures.node:
                places[figures.pods.namespaces[place], figures.pods.names[place]] = uid
        series: dict[str, Mapping[str, float]] = {}
        containers: dict[str, dict[str, Mapping[str, float]]] = {}
        for row in figures.rows() if places else ():
            found = places.get((row.namespace, row.name)) if row.resource == "pods" else None
            if found is None:
                continue
            if CONTAINER in row.labels:
                used = {name: row.figures[key] for key, name in _RESOURCES.items() if key in row.figures}
                containers.setdefault(found, {})[row.labels[CONTAINER]] = used
            else:
                series[found] = row.figures
        for uid in places.values():
            self.standings[uid] = PodStanding(at_s, series.get(uid, {}), containers.get(uid, {}))
