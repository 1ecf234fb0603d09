"""Amounts of pods that have been accepted for nodes and have not appeared on one yet.

A scheduler tells an extender which nodes it asks about, and never which one it chooses. A pod therefore counts on every
node that accepted it, until it appears on one of them or its time is over, so that no two pods get the same room.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from services.central.core.scheduling.cluster.pod_asks import PodAsk

MOST_HELD = 4096
"""Pods that are held for; the oldest go, for a scheduler has that many on their way only where it binds none."""
_NOBODY: Mapping[str, PodAsk] = {}


@dataclass(frozen=True, slots=True)
class _Held:
    nodes: tuple[str, ...]
    until_s: float


@dataclass
class Reservations:
    """By pod and by node."""

    hold_s: float
    _pods: dict[str, _Held] = field(default_factory=dict)
    """By UID, those that were held for first in front."""
    _nodes: dict[str, dict[str, PodAsk]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._pods)

    def reserve(self, uid: str, ask: PodAsk, nodes: Iterable[str], now_s: float) -> None:
        """Count a pod on exactly these nodes: a scheduler that asks again has used none of the earlier ones."""
        self.release(uid)
        held = _Held(tuple(nodes), now_s + self.hold_s)
        if not held.nodes:
            return
        while len(self._pods) >= MOST_HELD:
            self.release(next(iter(self._pods)))
        self._pods[uid] = held
        for node in held.nodes:
            self._nodes.setdefault(node, {})[uid] = ask

    def release(self, uid: str) -> None:
        """Forget a pod: it is seen on a node, or gone."""
        held = self._pods.pop(uid, None)
        for node in held.nodes if held is not None else ():
            there = self._nodes[node]
            del there[uid]
            if not there:
                del self._nodes[node]

    def expire(self, now_s: float) -> None:
        """Forget those whose time is over."""
        # All are held for equally long, so the first one that stays ends it.
        while self._pods:
            uid, held = next(iter(self._pods.items()))
            if held.until_s > now_s:
                return
            self.release(uid)

    def on(self, node: str) -> Mapping[str, PodAsk]:
        """Return what counts on a node, by UID."""
        return self._nodes.get(node, _NOBODY)
