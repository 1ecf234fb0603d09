"""A team's own login, as `sublet consumers add` gives it, with every example: it reads, and says when it may not."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from consumer_rig import Consumer, Language, built
from events_told import Teller, evictions, ids_by_pod
from slow_machines import patience_s

from shared.adapters.nats.embedded.password import password_hash
from shared.adapters.nats.embedded.reload import LocalServer, local_server
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.eviction import EvictionEvent
from shared.core.bus.durable import EventFilter, wanted_durable

pytestmark = [pytest.mark.consumers, pytest.mark.timeout(300)]

TEAM = "team-a"
PATIENCE_S = patience_s(60.0)
ACK_WAIT_S = 2.0
"""What was under way when the login went comes again after this long."""
PASSWORD, OTHER = "first-password", "second-password"
REFUSED = "authorization violation"


@pytest.fixture
def running(server: NatsServer, tmp_path: Path) -> LocalServer:
    """The server as another process finds it."""
    found = local_server(tmp_path / "nats")
    assert found is not None
    return found


@pytest.fixture
async def team(language: Language, teller: Teller, running: LocalServer) -> str:
    """The name of the durable that the example uses, and of a login for it."""
    await teller.bus.durables.put(
        wanted_durable(language.durable, EventFilter(namespaces=[TEAM]), ack_wait_s=ACK_WAIT_S)
    )
    await asyncio.to_thread(running.set_login, language.durable, password_hash(PASSWORD))
    return language.durable


def consumer_with(language: Language, server: NatsServer, password: str, out: Path) -> Consumer:
    url = server.address.replace("nats://", f"nats://{language.durable}:{password}@")
    return Consumer(language, built(language), url=url, out=out, namespace=TEAM)


async def reached(condition: Callable[[], bool], consumer: Consumer) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert consumer.running, f"it ended by itself:\n{consumer.said()}"
        assert time.monotonic() < deadline, f"{len(consumer.lines())} lines after {PATIENCE_S:g} s:\n{consumer.said()}"
        await asyncio.sleep(0.01)


async def test_it_reads_with_its_own_account_and_waits_while_its_login_is_gone(
    language: Language, server: NatsServer, running: LocalServer, teller: Teller, team: str, tmp_path: Path
) -> None:
    first, second = evictions(TEAM, 1, pods=2), evictions(TEAM, 2, pods=2)
    await teller.tell([*evictions("team-b", 1, pods=1), *first])
    with consumer_with(language, server, PASSWORD, tmp_path / "events.jsonl") as consumer:
        consumer.start()
        await reached(lambda: len(consumer.lines()) == len(first), consumer)
        await asyncio.to_thread(running.set_login, team, password_hash(OTHER))
        await teller.tell_nonsense(TEAM)
        await teller.tell(second)
        await reached(lambda: REFUSED in consumer.said().lower(), consumer)
        assert len(consumer.lines()) == len(first)
        await asyncio.to_thread(running.set_login, team, password_hash(PASSWORD))
        await reached(lambda: len(consumer.lines()) == len(first) + len(second), consumer)
        assert consumer.stop() == 0, consumer.said()
        assert "not an event, put aside" in consumer.said()
        events = [EvictionEvent.model_validate(line["data"]) for line in consumer.lines()]
        assert ids_by_pod(events) == ids_by_pod([*first, *second])
        assert PASSWORD not in consumer.said()


async def test_with_a_wrong_password_it_says_so_and_reads_nothing(
    language: Language, server: NatsServer, teller: Teller, team: str, tmp_path: Path
) -> None:
    await teller.tell(evictions(TEAM, 1, pods=1))
    with consumer_with(language, server, OTHER, tmp_path / "events.jsonl") as consumer:
        consumer.start()
        await reached(lambda: REFUSED in consumer.said().lower(), consumer)
        assert consumer.lines() == []
        assert OTHER not in consumer.said()
        assert consumer.stop() == 0, consumer.said()
