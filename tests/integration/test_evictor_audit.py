"""`sublet audit` over a real server and a real ledger: what is planted is found, and the exit code says it."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nats
import pytest
from evictor_rig import NODE, TOO_LITTLE_MILLIS, Voices, evictor_app

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.stored import read_event
from shared.contracts.bus.subjects import EVENTS_STREAM, STREAMS
from shared.contracts.eviction import EvictionEvent
from shared.ports import DurableMessage, Stored
from shared.wire import Wire

PHASES = ("intended", "created", "succeeded")


class Planting:
    """The bus, except that one event does not arrive as it was sent."""

    def __init__(self, bus: NatsBus, fault: str, phase: str) -> None:
        self._bus, self._fault, self._phase = bus, fault, phase

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    async def publish_durable(self, message: DurableMessage, *, budget_s: float = 20.0) -> Stored:
        fact = "ce-id" in message.headers
        event = read_event(message.subject, message.headers, message.data) if fact else None
        assert event is None or isinstance(event, EvictionEvent)
        if event is None or event.phase != self._phase or self._fault == "none":
            return await self._bus.publish_durable(message, budget_s=budget_s)
        if self._fault == "removed":
            return Stored(EVENTS_STREAM, 1)
        if self._fault == "wrong UID":
            event = event.model_copy(update={"pod_uid": "0bad"})
        if self._fault == "unreadable":
            return await self._bus.publish_durable(replace(message, data=b"\xff"), budget_s=budget_s)
        stored = await self._send(message.subject, event, budget_s)
        if self._fault == "doubled":
            await self._send(message.subject, event.model_copy(update={"attempt": event.attempt + 1}), budget_s)
        return stored

    async def _send(self, subject: str, event: EvictionEvent, budget_s: float) -> Stored:
        message = DurableMessage(subject, event.encode(), msg_id=event.event_id, headers=event_headers(event))
        return await self._bus.publish_durable(message, budget_s=budget_s)


async def evict_one(url: str, state_dir: Path, fault: str, phase: str) -> None:
    """One eviction, told and acknowledged."""
    clock = SystemClock()
    bus = await connect(url, name="evictor", connect_timeout_s=10, clock=clock)
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    voices = Voices(bus)
    wire = Wire(Planting(bus, fault, phase), clock, node=NODE, service="evictor")
    app = evictor_app(wire, state_dir, voices.evictor, announce_s=5)
    working = asyncio.create_task(app.run())

    def told() -> bool:
        state = app.state()
        return state["outbox"] == 0 and [eviction.get("step") for eviction in state["recent"]] == ["succeeded"]

    await voices.speak_until(told, TOO_LITTLE_MILLIS)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    await app.close()
    await bus.drain()


Audited = Callable[..., tuple[int, dict[str, Any]]]
"""Evicts with a fault at a phase; the exit code of the audit, and what it prints."""


@pytest.fixture
def audit(server: NatsServer, tmp_path: Path) -> Audited:
    """What the command prints and with which code it ends, after an eviction to which something was done."""

    def run(fault: str = "none", phase: str = "") -> tuple[int, dict[str, Any]]:
        state_dir = tmp_path / "state"
        asyncio.run(evict_one(server.url, state_dir, fault, phase))
        done = command(server.url, state_dir, "--output", "json")
        return done.returncode, json.loads(done.stdout)

    return run


def command(url: str, state_dir: Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = {"SUBLET_NATS_URL": url, "SUBLET_STATE_DIR": str(state_dir), "SUBLET_NODE": NODE}
    return subprocess.run(
        [sys.executable, "-m", "sublet", "audit", *words], env=os.environ | own, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_a_whole_history_ends_in_0(audit: Audited, server: NatsServer, tmp_path: Path) -> None:
    code, found = audit()
    assert (code, found["whole"], found["events"], found["intents"], found["waiting"]) == (0, True, 3, 1, 0)
    said = command(server.url, tmp_path / "state")
    assert (said.returncode, said.stdout.splitlines()[-1]) == (
        0,
        "the history is whole: nothing lost, nothing doubled, nobody else evicted",
    )


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(
    ("fault", "kind"), [("removed", "lost"), ("doubled", "doubled"), ("wrong UID", "wrong_pod")]
)  # fmt: skip
def test_what_is_planted_is_named_and_ends_in_1(audit: Audited, fault: str, kind: str, phase: str) -> None:
    code, found = audit(fault, phase)
    assert (code, found["whole"]) == (1, False)
    assert kind in {fault["kind"] for fault in found["faults"]}


def test_streams_that_were_made_anew_have_lost_what_the_ledger_told(
    audit: Audited, server: NatsServer, tmp_path: Path
) -> None:
    audit()
    asyncio.run(make_anew(server.url))
    gone = command(server.url, tmp_path / "state")
    assert gone.returncode == 1
    lost = [line for line in gone.stdout.splitlines() if line.startswith("lost: ")]
    assert sum("is not in the stream" in line for line in lost) == 4, "three events and the intent"


async def make_anew(url: str) -> None:
    client = await nats.connect(url)
    bus = await connect(url, name="central", connect_timeout_s=10, clock=SystemClock())
    for spec in STREAMS:
        await client.jetstream().delete_stream(spec.name)
        await bus.ensure_stream(spec)
    await bus.drain()
    await client.close()


def test_a_message_that_cannot_be_read_ends_in_1_and_is_named(audit: Audited) -> None:
    code, found = audit("unreadable", "created")
    assert code == 1
    assert {fault["kind"] for fault in found["faults"]} == {"lost", "unreadable"}


def test_without_a_server_or_with_a_ledger_that_is_none_it_ends_in_3(server: NatsServer, tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("no database")
    broken = command(server.url, tmp_path)
    assert broken.returncode == 3
    assert "ledger.db" in broken.stderr
    server.stop()
    nobody = command(server.url, tmp_path)
    assert nobody.returncode == 3
    assert "no NATS server" in nobody.stderr
