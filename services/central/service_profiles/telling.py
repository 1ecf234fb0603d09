"""Publishes to each node the services of its pods: at once when they change, and once a minute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from services.central.core.lost_nodes.pacing import Pace
from services.central.core.service_profiles.told import ServiceHere
from shared.contracts.cluster.profiles import PROFILES_PERIOD_S, ServiceProfiles
from shared.core.evictions.intents import TokenBucket
from shared.wire import Wire

PACE: Final = Pace(per_s=200.0, burst=1000)
"""Nodes per second: 5 000 once a minute are 84 a second."""
FAREWELLS: Final = 3
"""How often a node is told that none of its pods has a profile any more, because a message may be lost."""

Services = tuple[ServiceHere, ...]


@dataclass(frozen=True, slots=True)
class _Told:
    services: Services
    at_s: float
    empty: int = 0
    """How often it was told that there is nothing."""


class NodeTelling:
    """Remembers the last message to each node; a new leader publishes to every node anew."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._told: dict[str, _Told] = {}
        self._bucket = TokenBucket(PACE.burst, 0.0)

    async def publish(self, wanted: Mapping[str, Services], left_out: Mapping[str, int]) -> None:
        """Publish what is due for each node; while the bus is away do nothing, and the next pass tries again."""
        for node in sorted(wanted.keys() | self._told.keys()):
            now_s, services, before = self._wire.clock.monotonic(), wanted.get(node, ()), self._told.get(node)
            is_news = before is None or before.services != services
            if not is_news and before is not None and now_s - before.at_s < PROFILES_PERIOD_S:
                continue
            rest = PACE.spend(self._bucket, now_s)
            if rest is None:
                return
            self._bucket = rest
            told = tuple(one.message for one in services)
            message = self._wire.stamp(ServiceProfiles, services=told, pods_left_out=left_out.get(node, 0))
            if not await self._wire.publish(message.model_copy(update={"node": node})):
                return
            empty = 0 if services else (before.empty if before else 0) + 1
            if empty >= FAREWELLS:
                del self._told[node]
            else:
                self._told[node] = _Told(services, now_s, empty)

    def state(self) -> Mapping[str, Any]:
        """Return how many nodes are told about how many services, and the number of their pods."""
        services: Sequence[ServiceHere] = [one for told in self._told.values() for one in told.services]
        return {"nodes": len(self._told), "services": len({(one.namespace, one.name) for one in services}),
                "pods": sum(len(one.pods) for one in services)}  # fmt: skip
