"""Which pods each agent evicts, or would evict, during the comparison.

Facts: docs/facts/other-agents.md#leaving-a-node.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.adapters.kube.client import Kube
from shared.errors import SubletError
from shared.ports import Clock

EVICTED = "evictPodSuccess"
"""The reason of koordlet's events."""
PERIOD_S = 10.0
MAX_EVICTIONS = 1000
State = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class EvictionsSeen:
    """Pods by name; None where it is not known."""

    ours: tuple[str, ...] | None
    theirs: tuple[str, ...] | None
    why: str = ""
    """Why theirs are not known."""


def rehearsed(state: State) -> dict[str, str] | None:
    """Pods that our evictor would have evicted, by intent; None where it says nothing that can be read."""
    rows = state.get("recent") if state is not None else None
    if not isinstance(rows, list):
        return None
    found = {}
    for row in rows[:MAX_EVICTIONS]:
        intent = row.get("intent") if isinstance(row, Mapping) else None
        if isinstance(intent, Mapping) and intent.get("mode") != "enforce":
            found[str(intent.get("intent_id"))] = f"{intent.get('namespace')}/{intent.get('pod')}"
    return found


def evicted(events: Mapping[str, Any], node: str) -> dict[str, str]:
    """Pods that koordlet of this node has evicted, by their event."""
    found = {}
    rows = events.get("items")
    for row in rows[:MAX_EVICTIONS] if isinstance(rows, list) else ():
        about, source = row.get("involvedObject") or {}, row.get("source") or {}
        if source.get("host", node) == node:
            uid = str((row.get("metadata") or {}).get("uid"))
            found[f"{uid}/{row.get('count', 1)}"] = f"{about.get('namespace')}/{about.get('name')}"
    return found


class EvictionWatch:
    """Looks at both now and then; what was there at the first look does not count."""

    def __init__(self, ask: Callable[[], Awaitable[State]], kube: Kube | None, node: str, clock: Clock) -> None:
        self._ask, self._kube, self._node, self._clock = ask, kube, node, clock
        self._looked_at_s: float | None = None
        self._old: set[str] = set()
        self._ours: dict[str, str] | None = None
        self._theirs: dict[str, str] | None = None
        self._why = "no way to the API server: name one with --kubeconfig" if kube is None else ""

    async def update(self, *, now: bool = False) -> None:
        """Look, where it is time."""
        at_s, first = self._clock.monotonic(), self._looked_at_s is None
        if not (now or self._looked_at_s is None or at_s - self._looked_at_s >= PERIOD_S):
            return
        self._looked_at_s = at_s
        ours, theirs = rehearsed(await self._ask()), await self._events()
        if first:
            self._old = {*(ours or ()), *(theirs or ())}
        self._ours = _joined(self._ours, ours)
        self._theirs = _joined(self._theirs, theirs)

    async def _events(self) -> dict[str, str] | None:
        if self._kube is None:
            return None
        try:
            events = await self._kube.list("/api/v1/events", fieldSelector=f"reason={EVICTED}")
            return evicted(events, self._node)
        except (SubletError, AttributeError, TypeError) as error:
            self._why = f"{error}; name one who may read events with --kubeconfig"
            return None

    def seen(self) -> EvictionsSeen:
        """All that have come since the first look."""
        return EvictionsSeen(
            self._new(self._ours), self._new(self._theirs), "" if self._theirs is not None else self._why
        )

    def _new(self, found: Mapping[str, str] | None) -> tuple[str, ...] | None:
        return None if found is None else tuple(name for key, name in found.items() if key not in self._old)


def _joined(before: dict[str, str] | None, now: dict[str, str] | None) -> dict[str, str] | None:
    return now if before is None else before | (now or {})
