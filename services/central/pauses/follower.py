"""Follows the ConfigMap with the pauses of cluster and pools."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.central.core.objects.nodes import NodeSeen
from shared.contracts.cluster.pauses import CONFIG_MAP, Pause, read_pauses, why_paused
from shared.core.api_kind import CONFIG_MAPS
from shared.errors import Unavailable
from shared.ports import Clock, ObjectMirror, Objects


@dataclass(frozen=True, slots=True)
class PausesSeen:
    """The ConfigMap: its pauses, and keys that are none."""

    pauses: tuple[Pause, ...] = ()
    strange: tuple[str, ...] = ()


def pauses_of(document: Mapping[str, Any]) -> PausesSeen:
    """The pauses of a ConfigMap's document."""
    data = document.get("data")
    return PausesSeen(*read_pauses(data)) if isinstance(data, Mapping) else PausesSeen()


class PauseFollower:
    """Every central follows it, so that a new leader knows the pauses before it does anything."""

    def __init__(self, objects: Objects, nodes: ObjectMirror[NodeSeen], clock: Clock, namespace: str) -> None:
        self._nodes, self._clock = nodes, clock
        self.changed = asyncio.Event()
        self.mirror = objects.mirror_one(CONFIG_MAPS, CONFIG_MAP, pauses_of, self.changed.set, namespace=namespace)

    @property
    def failure(self) -> str:
        """Why it is not known what is paused; "" once the ConfigMap was seen, there or not."""
        try:
            _ = self.mirror.objects
        except Unavailable as error:
            return f"ConfigMap {CONFIG_MAP}: {error}"
        return ""

    @property
    def seen(self) -> PausesSeen:
        """What it says now; nothing where there is none.

        Raises:
            Unavailable: it was never seen.
        """
        return next(iter(self.mirror.objects.values()), PausesSeen())

    def in_force(self) -> tuple[Pause, ...]:
        """The pauses that are not over.

        Raises:
            Unavailable: as `seen`.
        """
        now = self._clock.wall()
        return tuple(pause for pause in self.seen.pauses if pause.holds(now))

    def why(self, node: str) -> str:
        """Why central evicts nothing from a node, "" when it may; what is not known is a reason."""
        try:
            there = next((one for one in self._nodes.objects.values() if one.name == node), None)
            pool = None if there is None else there.place.pool or ""
            why = why_paused(self.in_force(), pool, self._clock.wall())
        except Unavailable as error:
            return f"it is not known whether evictions are paused: {error}"
        return f"evictions are paused: {why}" if why else ""
