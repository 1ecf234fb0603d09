"""What went over the bus during the demo: every message is counted, those of an eviction are kept."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.contracts.bus.stored import RefusedMessage, read_event, read_intent
from shared.contracts.bus.subjects import EVENTS_STREAM, ask_subject, event_filter
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.errors import Unavailable
from shared.ports import Received

F = TypeVar("F", EvictionEvent, EvictionIntent)

POLL_S = 0.05


@dataclass
class Chain:
    """A listener on the whole bus of one node."""

    bus: NatsBus
    node: str
    counts: Counter[str] = field(default_factory=Counter)
    intents: list[tuple[float, EvictionIntent]] = field(default_factory=list)
    events: list[tuple[float, EvictionEvent]] = field(default_factory=list)
    samples: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    revision: int = 0

    @classmethod
    @asynccontextmanager
    async def recording(cls, url: str, *, node: str) -> AsyncIterator["Chain"]:
        """Listen for as long as the block runs."""
        bus = await connect(url, name="demo", connect_timeout_s=10.0, clock=SystemClock())
        chain = cls(bus, node)
        subscription = await bus.subscribe("sublet.>", chain.record)
        try:
            yield chain
        finally:
            await subscription.stop()
            await bus.drain()

    def record(self, received: Received) -> None:
        """Count a message; keep intents, events and the newest samples."""
        now, kind = time.monotonic(), received.subject.split(".")[3]
        self.counts[kind] += 1
        if kind == "intent":
            self._keep(self.intents, now, read_intent(received.subject, received.data))
        elif kind == "event":
            self._keep(self.events, now, read_event(received.subject, received.headers, received.data))
        elif kind == "sample":
            self.samples.append((now, json.loads(received.data)))
            del self.samples[:-100]

    def _keep(self, kept: list[tuple[float, F]], now: float, message: F | RefusedMessage) -> None:
        if isinstance(message, RefusedMessage):
            self.counts["refused"] += 1
        else:
            kept.append((now, message))

    async def configured(self, timeout_s: float) -> bool:
        """Wait until the evictor works with a newer dynamic configuration than at the last call."""
        return await self._until(self._newer, timeout_s)

    async def _newer(self) -> bool:
        try:
            answer = json.loads(await self.bus.request(ask_subject(self.node, "evictor")))
        except Unavailable:  # busy, or not up yet: asked again
            return False
        before, self.revision = self.revision, int(answer.get("config_rev") or 0)
        return self.revision > before

    async def succeeded(self, pod: str, timeout_s: float) -> bool:
        """Wait for the event that says a pod is gone."""

        async def gone() -> bool:
            return self.first_s("succeeded", pod) is not None

        return await self._until(gone, timeout_s)

    async def _until(self, condition: Callable[[], Awaitable[bool]], timeout_s: float) -> bool:
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if await condition():
                return True
            await asyncio.sleep(POLL_S)
        return False

    def first_s(self, phase: str, pod: str) -> float | None:
        """When an event of a phase of a pod was received."""
        return next((at for at, e in self.events if e.phase == phase and e.pod == pod), None)

    def rows(self, pod: str) -> list[dict[str, Any]]:
        """The eviction of one pod, message by message, seconds counted from the intent."""
        found = [(at, "intent", i.model_dump(mode="json")) for at, i in self.intents if i.pod == pod]
        found += [(at, f"event {e.phase}", e.model_dump(mode="json")) for at, e in self.events if e.pod == pod]
        if not found:
            return []
        zero = min(at for at, _, _ in found)
        before = [(at, s) for at, s in self.samples if at <= zero][-1:]
        samples = [
            (at, "sample", {"seq": s["seq"], "trigger": s.get("trigger"),
                            "memory_free_bytes": s["node_reading"].get("memory_free_bytes")})
            for at, s in before
        ]  # fmt: skip
        return [{"at_s": round(at - zero, 4), "message": kind, "data": data} for at, kind, data in sorted(
            samples + found, key=lambda row: row[0])]  # fmt: skip

    async def lost(self) -> list[str]:
        """Events that the ledger knows and the stream does not, and repetitions; empty when all is well."""
        stored = await self.bus.replay(EVENTS_STREAM, event_filter())
        read = [read_event(r.subject, r.headers, r.data) for r in stored]
        ids = Counter(event.event_id for event in read if not isinstance(event, RefusedMessage))
        state = json.loads(await self.bus.request(ask_subject(self.node, "evictor")))
        known = [event["event_id"] for event in state.get("events", [])]
        faults = [
            f"event {event_id} is in the ledger and not in the stream" for event_id in known if event_id not in ids
        ]
        return faults + [f"event {event_id} is in the stream {n} times" for event_id, n in ids.items() if n > 1]
