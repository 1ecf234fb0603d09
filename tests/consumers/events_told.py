"""Eviction events as evictors publish them, with the repetitions that a subscriber can meet."""

import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.subjects import STREAMS, event_subject
from shared.contracts.eviction import EvictionEvent
from shared.contracts.eviction_phases import Phase
from shared.contracts.ids import intent_id
from shared.ports import DurableMessage

NODE = "node-a.example"
PHASES: tuple[Phase, ...] = ("intended", "created", "succeeded")
STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def evictions(namespace: str, episode: int, *, pods: int) -> list[EvictionEvent]:
    """One eviction of each pod, all under way at the same time: phase by phase over the pods."""
    told: list[EvictionEvent] = []
    for phase in PHASES:
        for number in range(pods):
            uid = f"{namespace.encode().hex()}-{number:08x}"
            seq = episode * 1000 + len(told)
            told.append(
                EvictionEvent(
                    node=NODE,
                    boot_id="0123456789abcdef",
                    seq=seq,
                    sent_at=STARTED + timedelta(seconds=seq),
                    intent_id=intent_id(NODE, uid, "memory", episode),
                    namespace=namespace,
                    pod=f"batch-{number}",
                    pod_uid=uid,
                    qos="reclaimed_cores",
                    plugin="memory",
                    scope="MemoryPressure",
                    observed=98.5,
                    threshold=90.0,
                    phase=phase,
                    message="“quoted”, \\ and ünïcode\nin two lines",
                )
            )
    return told


def ids_by_pod(events: Sequence[EvictionEvent]) -> Mapping[str, list[str]]:
    """The ids of each pod's events, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for event in events:
        found[event.pod].append(event.event_id)
    return found


@contextlib.asynccontextmanager
async def telling(url: str) -> AsyncIterator["Teller"]:
    """A connection of its own, on streams made as central makes them."""
    bus = await connect(url, name="evictor/node-a", connect_timeout_s=5, clock=SystemClock())
    try:
        for spec in STREAMS:
            await bus.ensure_stream(spec)
        yield Teller(bus)
    finally:
        await bus.drain()


class Teller:
    """Publishes as the evictor's outbox does, and repeats as networks and restarts do."""

    def __init__(self, bus: NatsBus) -> None:
        self.bus = bus

    async def tell(self, events: Sequence[EvictionEvent], *, suffix: str = "") -> int:
        """Store them in order; how many of them the stream had already. `suffix` changes the NATS message id only."""
        repeated = 0
        for event in events:
            stored = await self.bus.publish_durable(
                DurableMessage(
                    event_subject(event), event.encode(), msg_id=event.event_id + suffix, headers=event_headers(event)
                )
            )
            repeated += stored.duplicate
        return repeated

    async def tell_after_the_window(self, events: Sequence[EvictionEvent]) -> None:
        """Once more with the same CloudEvents id, in the way of the stream's duplicate check: it stores them again."""
        assert await self.tell(events, suffix="#late") == 0

    async def tell_nonsense(self, namespace: str) -> None:
        """A message on the events' subjects that is none."""
        await self.bus.publish_durable(
            DurableMessage(
                f"sublet.cluster.v1.event.eviction.created.{namespace}.node-a_example", b"\x00\xff{", msg_id="nonsense"
            )
        )
