"""What a node says that it refuses is words of a stranger: central counts on, and no terminal obeys them.

`FUZZ` is how many heartbeats (100 000), `FUZZ_SEED` the seed; a failure names the seed and the number of its message.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from central_rig import central_on
from odd_documents import odd_texts
from until_met import until_met

from services.central.core.heartbeats.config_tally import LISTED_REFUSALS, tally
from services.central.core.heartbeats.heartbeat_rate import MAX_HEARTBEAT_BYTES
from services.central.core.heartbeats.readiness import Ledger, record
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.readiness import WHY_CHARACTERS, ConfigRefusal, Readiness, ServiceHealth
from shared.errors import Refused
from shared.wire import Wire
from sublet.ask import MAX_ANSWER_BYTES, read_answer
from sublet.views.config import status
from sublet.views.facts import read

pytestmark = pytest.mark.timeout(600)

COUNT, SEED = int(os.environ.get("FUZZ", "100000")), int(os.environ.get("FUZZ_SEED", "20261123"))
HONEST = ConfigRefusal.of(12, "evictor.cooling_s = -1: want a number from 0 to 3600")
REFUSAL = {"revision": 12, "why": "qrm.lease_s = 0: want 1 to 60"}
GOOD = {
    "v": 1, "node": "n1", "boot_id": "0123456789abcdef", "seq": 1, "sent_at": "2026-01-01T00:00:00Z", "ready": True,
    "services": [{"service": "qrm", "ok": True, "config_revision": 11, "config_refused": REFUSAL}],
}  # fmt: skip
ODD_REFUSALS: tuple[Any, ...] = (
    "refused", [], [[[]]], 7, True, {}, {"revision": -1, "why": ""}, {"revision": "12", "why": "w"},
    {"revision": 10**40, "why": "w"}, {"revision": 1e308, "why": "w"}, {"revision": 1, "why": {"a": 1}},
    {"revision": 1, "why": "x" * (WHY_CHARACTERS + 1)}, {"revision": 1, "why": "\U0001f4a5" * WHY_CHARACTERS},
    {"revision": 1, "why": "\x1b]0;owned\x07\x1b[2J\r\n0 refused"}, {"revision": 1, "why": "\u202e\u2066\u0000"},
    {"revision": 1, "why": "w", "more": {"a": [{}] * 500}},
)  # fmt: skip


def said(node: str, refusal: Any, service: str = "qrm") -> bytes:
    """A heartbeat with a refusal as it should not be."""
    row = {"service": service, "ok": True, "config_revision": 11, "config_refused": refusal}
    return json.dumps(GOOD | {"node": node, "services": [row]}).encode()


def check_shown(config: dict[str, Any]) -> list[str]:
    """The lines of `sublet config status` over what central says: printable, and few."""
    answer = read_answer(json.dumps({"config": config}).encode())
    assert answer is not None
    lines = list(status.lines(status.as_json(read("n1", {"central": answer, "reporter": None}))))
    assert all(line.isprintable() for line in lines)
    assert len(lines) <= 1 + LISTED_REFUSALS
    return lines


def test_no_heartbeat_spoils_the_tally_or_its_words() -> None:
    ledger: Ledger = {}
    for number, (name, text) in enumerate(odd_texts([GOOD], COUNT // 5, SEED)):
        try:
            if len(text) <= MAX_HEARTBEAT_BYTES:
                record(ledger, Readiness.decode(text), float(number))
        except Refused:
            continue
        except Exception as error:
            raise AssertionError(f"heartbeat {name}: {error!r}: {text[:500]!r}") from error
        if number % 50 == 0:
            counted = tally(ledger, 12)
            assert sum(counted.counts().values()) == len(ledger)
            check_shown({"revision": 12, "nodes": counted.counts(), "refusals": list(counted.refusals())})


async def test_central_hears_an_honest_refusal_among_hostile_ones(
    nats_server: NatsServer, until: Callable[[Callable[[], object]], Awaitable[None]]
) -> None:
    clock = SystemClock()
    bus, nodes = [await connect(nats_server.url, name=name, connect_timeout_s=20, clock=clock) for name in "ab"]
    app = central_on(Wire(bus, clock, node="hub", service="central"), clock, {"central": {"assess_s": 0.1}})
    work = asyncio.create_task(app.run())
    honest = Wire(nodes, clock, node="honest", service="reporter")
    rows = (ServiceHealth(service="evictor", ok=True, config_revision=11, config_refused=HONEST),)

    async def heard() -> bool:
        # Published again with every try: central may still refuse the node for the many messages before.
        said_again = honest.stamp(Readiness, ready=True, services=rows)
        await nodes.publish("sublet.cluster.v1.ready.honest", said_again.encode())
        return any(row["why"] == HONEST.why for row in app.state()["config"]["refusals"])

    try:
        await until(lambda: app.state()["health"]["ok"])
        for number, refusal in enumerate(ODD_REFUSALS):
            await nodes.publish(f"sublet.cluster.v1.ready.bad-{number}", said(f"bad-{number}", refusal))
            await nodes.publish(f"sublet.cluster.v1.ready.long-{number}", said(f"long-{number}", REFUSAL, "s" * 7000))
            await nodes.publish("sublet.cluster.v1.ready.honest", said(f"other-{number}", refusal))  # for another node
        await until_met(heard, limit_s=60)
        told = app.state()["config"]
        assert len(json.dumps(app.state())) < MAX_ANSWER_BYTES
        assert told["nodes"]["refused"] == sum(row["nodes"] for row in told["refusals"])
        assert all(not node.startswith("other-") for row in told["refusals"] for node in row["such_as"])
        assert any(HONEST.why in line for line in check_shown(told))
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
        await app.close()
        await asyncio.gather(bus.drain(), nodes.drain())
