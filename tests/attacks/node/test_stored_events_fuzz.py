"""Whatever a node stores as an event: no reader ends, and nothing of it reaches a terminal as it was written.

`FUZZ` is how many messages (100 000), `FUZZ_SEED` the seed; a failure names the seed and the number of its message.
"""

import importlib.util
import io
import json
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.stored import RefusedMessage, read_event
from shared.contracts.bus.subjects import event_subject
from shared.contracts.eviction import EvictionEvent
from shared.contracts.eviction_phases import PHASES
from shared.contracts.ids import intent_id
from shared.core.evictions.audit import StoredEvent
from shared.core.evictions.audit import audit as compare
from shared.ports import Received
from sublet.bridge.kube_events import event_document, too_old
from sublet.bridge.request import request_headers
from sublet.commands import audit as audit_command
from sublet.commands import explain
from sublet.output import printable
from sublet.terminal.formats import EVENTS
from sublet.views import events as view

ROOT = Path(__file__).parents[3]
COUNT = int(os.environ.get("FUZZ", "100000"))
SEED = int(os.environ.get("FUZZ_SEED", "20261122"))
CHUNK = 1_000
NOW = datetime(2026, 3, 9, 14, 10, tzinfo=UTC)
NODES = ("a", "b", "node-a.example")
NAMES = ("default", "kube-system", "team-a", "x" * 253)
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1e308, "", "a", "\0", "\r\nce-id: x", "\x1b]0;owned\x07", "\u202e", "\ud800", "ä" * 40,
    [], {}, [[]], "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00", 0.0, -(10**12),
)  # fmt: skip
HEADERS = ("ce-id", "ce-type", "ce-source", "ce-subject", "ce-time", "ce-specversion", "ce-partitionkey", "ce-sequence",
           "ce-extra", "traceparent", "tracestate", "Nats-Msg-Id", "content-type", "webhook-id")  # fmt: skip
BODIES = (b"", b"{}", b"null", b"\xff", b"[" * 30_000, b'{"a":' * 6_000, b"9" * 20_000, b'{"v":1,"v":2}', b"NaN")


def honest(chance: random.Random) -> EvictionEvent:
    uid = f"{chance.randrange(50):x}"
    node = chance.choice(NODES)
    return EvictionEvent(
        node=node, boot_id="0" * 8, seq=1, sent_at=NOW - timedelta(seconds=chance.randrange(9_000)),
        intent_id=intent_id(node, uid, "p", 1), namespace=chance.choice(NAMES), pod=f"pod-{uid}", pod_uid=uid,
        qos="reclaimed_cores", plugin="p", scope="memory", phase=chance.choice(PHASES),
        attempt=chance.randrange(1, 4), message="Evicted", observed=1.5,
    )  # fmt: skip


def messages(chance: random.Random, count: int) -> Iterator[Received]:
    """Half of them changed in one field, the others in their bytes, headers, or subject; some are whole."""
    for sequence in range(1, count + 1):
        event = honest(chance)
        subject, headers, body = event_subject(event), event_headers(event), event.encode()
        kind = chance.randrange(10)
        if kind < 5:
            document = json.loads(body)
            document[chance.choice([*document, "extra"])] = chance.choice(ODD)
            body = json.dumps(document).encode("utf-8", "surrogatepass")
        elif kind == 5:
            cut = bytearray(body)
            cut[chance.randrange(len(cut))] = chance.randrange(256)
            body = bytes(cut)
        elif kind == 6:
            odd = chance.choice([value for value in ODD if isinstance(value, str)])
            headers[chance.choice(HEADERS)] = odd
        elif kind == 7:
            body = chance.choice(BODIES)
        elif kind == 8:
            subject = event_subject(honest(chance)) + chance.choice(("", ".x", "\x1b"))
        yield Received(subject, body, headers, sequence)


def example_consumer() -> Any:
    spec = importlib.util.spec_from_file_location("consumer", ROOT / "examples/consumers/python/consumer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Log(io.BytesIO):
    """A file that is fast."""

    name = "log"

    def fileno(self) -> int:
        return 0


def deliver(received: Received) -> None:
    """What the bridges make of it: headers that HTTP takes, a document that the API server takes."""
    event = read_event(received.subject, received.headers, received.data)
    if isinstance(event, RefusedMessage):
        assert event.why.isascii()
        assert event.why.isprintable()
        return
    assert event_subject(event) == received.subject
    headers = request_headers(event, event.encode(), {}, b"k" * 32, 5)
    assert all(value.isascii() and value.isprintable() for value in headers.values())
    document = event_document(event)
    if document is not None and not too_old(event, NOW):
        assert document["metadata"]["namespace"] == event.namespace
        assert document["note"].isprintable()
        json.dumps(document)


def show(received: Received) -> None:
    """`sublet events` in each of its forms."""
    for output in (*EVENTS.kinds, "jsonpath={.namespace}/{.pod} {.message} {.detail} {.plugin}"):
        line = view.line(received, EVENTS.read(output), begin=NOW - timedelta(hours=1))
        assert isinstance(line, RefusedMessage) or line.replace("\n", "").replace("\t", "").isprintable()


def audited(chunk: list[Received], capsys: pytest.CaptureFixture[str]) -> None:
    """`sublet audit` and `sublet explain` over a stream."""
    found, bad = audit_command._readable(chunk, lambda r: read_event(r.subject, r.headers, r.data))
    audit_command._kept_since("SUBLET_EVENTS", chunk, [event.sent_at for _, event in found], NOW)
    result = compare([StoredEvent(sequence, event) for sequence, event in found], [], unreadable=bad)
    assert all(line.isprintable() for line in audit_command._lines(result))
    json.dumps(audit_command._document(result))
    explain._readable(chunk[::20])
    said = capsys.readouterr().err
    assert printable(said.replace("\n", "")) == said.replace("\n", "")


@pytest.mark.timeout(900)
def test_no_stored_message_ends_a_reader(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    consumer = example_consumer()
    monkeypatch.setattr(os, "fsync", lambda _: None)
    log, shown, chance = Log(), 0, random.Random(SEED)
    seen: set[str] = set()
    chunk: list[Received] = []
    for received in messages(chance, COUNT):
        try:
            deliver(received)
            if received.sequence % 20 == 0:
                show(received)
            message = SimpleNamespace(headers=received.headers, data=received.data, subject=received.subject)
            shown += consumer.record(message, log, seen)
            chunk.append(received)
            if len(chunk) == CHUNK:
                audited(chunk, capsys)
                chunk.clear()
        except BaseException as error:
            error.add_note(f"FUZZ_SEED={SEED}, message {received.sequence}: {received}")
            raise
    assert 0 < shown < COUNT
    lines = log.getvalue().splitlines()
    assert all(json.loads(line)["id"] for line in lines)
    assert len(lines) == len(seen)
