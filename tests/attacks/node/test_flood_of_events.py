"""A node that sends events as fast as it can drops nothing that another has stored, and holds up nobody for long.

`FLOOD_MIB` is how much it sends (280). `pytest -s` prints how long the other node waited for its acknowledgements.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import replace

import nats
from two_nodes import TwoNodes

from services.central.adapters.streams import FactStreams
from services.central.app import MAKE_ROOM_S
from shared.adapters.clock import SystemClock
from shared.contracts.bus.subjects import EVENTS_STREAM, MAX_FACT_BYTES, STREAMS, event_filter
from shared.errors import NotStored
from shared.ports import DurableMessage

FLOOD_BYTES = int(os.environ.get("FLOOD_MIB", "280")) << 20
HISTORY, BODY = 2_000, b"x" * 1_200
MINE = "sublet.cluster.v1.event.eviction.created.default.b"
SPEC = next(spec for spec in STREAMS if spec.name == EVENTS_STREAM)


async def make_history(nodes: TwoNodes) -> list[bytes]:
    """What node b has told before."""
    bodies = [b"%06d" % number + BODY for number in range(HISTORY)]
    for start in range(0, HISTORY, 100):
        await asyncio.gather(
            *(
                nodes.agent.publish_durable(DurableMessage(MINE, body, msg_id=f"{body[:6]!r}"))
                for body in bodies[start : start + 100]
            )
        )
    return sorted(bodies)


async def flood(nodes: TwoNodes, size: int) -> None:
    """Without a pause, on subjects without end."""
    sender = await nats.connect(nodes.thiefs_server, inbox_prefix="_INBOX_node.a")
    body = b"y" * size
    for number in range(FLOOD_BYTES // size):
        with contextlib.suppress(nats.errors.Error):
            await sender.publish(f"sublet.cluster.v1.event.eviction.created.n{number}.a", body)
        if number % 64 == 63:
            await sender.flush(timeout=600)
    await sender.close()


async def held_by(nodes: TwoNodes, node: str) -> list[bytes]:
    return [message.data for message in await nodes.central.replay(EVENTS_STREAM, event_filter(node=node))]


async def goes_on(nodes: TwoNodes, end: asyncio.Event) -> tuple[list[bytes], Sequence[float]]:
    """Node b tells more, one after the other, as its outbox does; how long each took."""
    told: list[bytes] = []
    waits: list[float] = []
    while not end.is_set():
        body, start = b"later %06d" % len(told) + BODY, time.monotonic()
        while True:
            with contextlib.suppress(NotStored):
                await nodes.agent.publish_durable(DurableMessage(MINE, body, msg_id=f"{body[:12]!r}"), budget_s=20)
                break
        waits.append(time.monotonic() - start)
        told.append(body)
        await asyncio.sleep(0.01)
    return told, sorted(waits)


async def looks(room: FactStreams) -> None:
    while True:
        await room.make_room()
        await asyncio.sleep(MAKE_ROOM_S)


async def test_a_flood_drops_no_event_of_another_node(two_nodes: TwoNodes) -> None:
    before, end, room = await make_history(two_nodes), asyncio.Event(), FactStreams(two_nodes.central, SystemClock())
    central, other = asyncio.create_task(looks(room)), asyncio.create_task(goes_on(two_nodes, end))
    start = time.monotonic()
    await flood(two_nodes, MAX_FACT_BYTES - 200)
    took_s = time.monotonic() - start
    end.set()
    told, waits = await other
    central.cancel()
    await asyncio.gather(central, return_exceptions=True)
    print(
        f"flood: {FLOOD_BYTES >> 20} MiB in {took_s:.1f} s; meanwhile {len(told)} acknowledged, "
        f"p50 {waits[len(waits) // 2]:.3f} s, p99 {waits[len(waits) * 99 // 100]:.3f} s, longest {waits[-1]:.3f} s"
    )
    assert await held_by(two_nodes, "b") == before + told
    assert {one["message"].split()[1] for one in room.conditions()} <= {"a"}  # a slow disk takes less than a tenth


async def test_without_central_a_flood_drops_nothing_either(two_nodes: TwoNodes) -> None:
    """A full stream refuses what is new; node b keeps it until there is room."""
    await two_nodes.central.ensure_stream(small := replace(SPEC, max_bytes=16 << 20))
    before = await make_history(two_nodes)
    global FLOOD_BYTES
    whole, FLOOD_BYTES = FLOOD_BYTES, 32 << 20
    try:
        await flood(two_nodes, MAX_FACT_BYTES - 200)
    finally:
        FLOOD_BYTES = whole
    assert await held_by(two_nodes, "b") == before
    [cut] = await two_nodes.central.make_room(small)
    assert cut.node == "a"
    await two_nodes.agent.publish_durable(DurableMessage(MINE, b"later", msg_id="later"))


async def test_what_is_larger_than_any_event_is_not_stored(two_nodes: TwoNodes) -> None:
    sender = two_nodes.thief.jetstream()
    subject = "sublet.cluster.v1.event.eviction.created.default.a"
    for size in (MAX_FACT_BYTES + 1, 60_000):
        try:
            await sender.publish(subject, b"y" * size, timeout=2)
        except nats.errors.Error as error:
            print(size, error)
    assert await held_by(two_nodes, "a") == []
