"""Poison on the wire of a real server: evictor and central refuse it, stay well, and do the next right thing."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from evictor_rig import NODE, PLENTY_MILLIS, TOO_LITTLE_MILLIS, VICTIM, Voices, evictor_app
from fixture_types import Until
from present import present
from slow_machines import patience_s

from services.central.main import PLAN as CENTRAL
from services.evictor.app import EvictorApp
from services.evictor.settings import NAME
from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.app import Context, Plan, Runner
from shared.contracts.allocation import Allocation
from shared.contracts.bus.stored import RefusedMessage, read_event
from shared.contracts.bus.subjects import EVENTS_STREAM, MAX_FACT_BYTES, intent_subject, state_subject
from shared.contracts.envelope import Message
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.contracts.readiness import Readiness
from shared.contracts.sample import NodeSample
from shared.ports import DurableMessage
from shared.settings import common_settings

SMALL = {
    "empty": b"",
    "half a document": b'{"v": 1, "node": ',
    "a list": b"[]",
    "wrong types": b'{"v": 1, "node": 5, "seq": "many"}',
    "deep nesting": b'{"a":' * 50_000,
    "bad UTF-8": b'{"node": "\xff\xfe"}',
    "not a number": b'{"v": 1, "seq": NaN}',
    "another version": b'{"v": 9}',
    "many keys": b"{" + b",".join(b'"k%d":1' % n for n in range(60_000)) + b"}",
}
STATE: dict[str, tuple[str, type[Message]]] = {
    "sample": ("evictor", NodeSample),
    "alloc": ("evictor", Allocation),
    "ready": ("central", Readiness),
}


@pytest.fixture
async def voices(server: NatsServer, tmp_path: Path) -> AsyncIterator[Voices]:
    """Those of a calm node, whose evictor and central have heard every kind of message."""
    clock, stop = SystemClock(), asyncio.Event()
    bus = await connect(server.url, name="services", connect_timeout_s=10, clock=clock)
    voices = Voices(await connect(server.url, name="others", connect_timeout_s=10, clock=clock))

    def build(context: Context) -> EvictorApp:
        return evictor_app(context.wire, tmp_path, voices.evictor, announce_s=5)

    common = common_settings({"node": NODE, "state_dir": tmp_path, "heartbeat_s": 0.2})
    runner = Runner([CENTRAL, Plan(NAME, build)], bus, clock, common, {"central": {"assess_s": 0.05}})
    task = asyncio.create_task(runner.run(stop))
    before = taken()
    try:
        await voices.speak_until(lambda: all(n > b for n, b in zip(taken(), before, strict=True)), PLENTY_MILLIS)
        yield voices
    finally:
        stop.set()
        with contextlib.suppress(asyncio.CancelledError):
            assert await task == 0
        await voices.bus.drain()


def phase_of(event: EvictionEvent | RefusedMessage) -> str:
    assert isinstance(event, EvictionEvent)
    return event.phase


async def evicted(voices: Voices) -> list[str]:
    """Offer far too little until the pod has gone; the phases that are told."""
    await voices.speak_until(lambda: voices.evictor.kills, TOO_LITTLE_MILLIS)
    told: list[str] = []
    async with asyncio.timeout(patience_s(20)):
        while "succeeded" not in told:
            events = [read_event(m.subject, m.headers, m.data) for m in await voices.bus.replay(EVENTS_STREAM, ">")]
            told = [phase_of(event) for event in events]
    return told


def taken() -> list[float]:
    return [telemetry.TAKEN.labels(service, message.kind)._value.get() for service, message in STATE.values()]


def refused() -> float:
    count: float = sum(
        telemetry.REFUSED.labels(service, message.kind, reason)._value.get()
        for service, message in STATE.values()
        for reason in ("malformed", "unknown_version", "too_large")
    )
    return count


async def test_poison_on_every_subject_is_refused_and_the_next_message_taken(voices: Voices, until: Until) -> None:
    before = refused()
    for message in (of for _, of in STATE.values()):
        for poison in SMALL.values():
            await voices.bus.publish(state_subject(message, NODE), poison)
    wanted = len(SMALL) * len(STATE)
    await until(lambda: refused() - before == wanted)
    assert voices.evictor.calls == []
    assert await evicted(voices) == ["intended", "created", "succeeded"]


async def test_poison_in_the_stream_of_intents_stands_in_nobodys_way(voices: Voices) -> None:
    intent = voices.wire.stamp(
        EvictionIntent, intent_id="0" * 36, namespace="default", pod=VICTIM.name, pod_uid=VICTIM.uid,
        qos=VICTIM.qos, plugin="central", scope="lost_node", episode=1, epoch=3,
    )  # fmt: skip
    for number, poison in enumerate(SMALL.values()):
        fits = poison[: MAX_FACT_BYTES - 100]  # the stream takes nothing larger; headers count
        await voices.bus.publish_durable(DurableMessage(intent_subject(intent), fits, msg_id=f"poison-{number}"))
    assert voices.evictor.calls == []
    assert await evicted(voices) == ["intended", "created", "succeeded"]


async def test_eight_megabytes_cost_their_sender_the_connection_and_nobody_else(
    voices: Voices, server: NatsServer
) -> None:
    subject, size = state_subject(NodeSample, NODE), 8 << 20
    where = urlsplit(server.url)
    login = json.dumps({"verbose": False, "user": where.username, "pass": unquote(present(where.password))}).encode()

    def send() -> bytes:
        with socket.create_connection((where.hostname, where.port), timeout=patience_s(10)) as stranger:
            stranger.recv(1 << 16)
            said = b"CONNECT %s\r\nPUB %s %d\r\n" % (login, subject.encode(), size)
            with contextlib.suppress(OSError):
                stranger.sendall(said + b"x" * size + b"\r\n")
            answer = b""
            with contextlib.suppress(OSError):
                while part := stranger.recv(1 << 16):
                    answer += part
            return answer

    assert b"Maximum Payload Violation" in await asyncio.to_thread(send)
    assert await evicted(voices) == ["intended", "created", "succeeded"]
