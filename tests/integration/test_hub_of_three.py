"""A hub of three that loses its leader, is partitioned, or has a full disk: what was acknowledged stays, once."""

import asyncio
import time
from functools import partial
from pathlib import Path

import pytest
from hub_of_three import NAMES, UP_S, HubOfThree, hub_of_three
from until_met import until_found, until_met

from shared.adapters.nats.bus import NatsBus
from shared.contracts.bus.subjects import CONFIG_BUCKET, INTENTS_STREAM
from shared.errors import NotStored, Unavailable
from shared.ports import DurableMessage, Entry

INTENT = "sublet.cluster.v1.intent.node-a.{}"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def fact(number: int) -> DurableMessage:
    return DurableMessage(INTENT.format(number), b"%d" % number, msg_id=f"i{number}")


async def stored(bus: NatsBus) -> list[int]:
    return sorted(int(message.data) for message in await bus.replay(INTENTS_STREAM, ">"))


async def until_stored_are(bus: NatsBus, wanted: list[int]) -> None:
    async def so() -> bool:
        try:
            return await stored(bus) == wanted
        except Exception:  # noqa: BLE001 - no leader yet
            return False

    await until_met(so, UP_S)


def told(request: pytest.FixtureRequest, what: str, since_s: float) -> None:
    """Print a measured time, for whoever runs it with -s, and keep it in the report."""
    took_s = time.monotonic() - since_s
    request.node.user_properties.append((what, round(took_s, 2)))
    print(f"\n{what}: {took_s:.2f} s")


async def test_a_stream_leader_that_dies_loses_nothing_and_is_replaced_within_the_budget_of_one_fact(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with hub_of_three(tmp_path) as hub:
        for life in range(3):
            leader, other = await hub.follower_of(INTENTS_STREAM)
            bus = await hub.client(other, "evictor/node-a")
            for number in range(10 * life, 10 * life + 9):
                await bus.publish_durable(fact(number))
            hub.servers[leader].kill()
            began_s = time.monotonic()
            await bus.publish_durable(fact(10 * life + 9))
            told(request, f"leader {leader} killed, until the next fact is acknowledged", began_s)
            hub.servers[leader].start()
            await until_stored_are(bus, list(range(10 * (life + 1))))
            await bus.drain()


async def test_what_was_acknowledged_is_read_while_a_replica_catches_up(tmp_path: Path) -> None:
    async with hub_of_three(tmp_path) as hub:
        leader, behind = await hub.follower_of(INTENTS_STREAM)
        bus = await hub.client(leader)
        for life in range(3):
            hub.servers[behind].stop()
            told = 200 * (life + 1)
            for number in range(told - 200, told):
                await bus.publish_durable(fact(number))
            hub.servers[behind].start()
            for _ in range(100):  # it is back within a second, and up to date after three
                assert await stored(bus) == list(range(told))
        await bus.drain()


async def test_a_server_that_is_cut_off_acknowledges_nothing_and_the_others_go_on(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with hub_of_three(tmp_path) as hub:
        leader, other = await hub.follower_of(INTENTS_STREAM)
        apart, together = await hub.client(leader, "evictor/apart"), await hub.client(other, "evictor/together")
        await apart.publish_durable(fact(0))
        revision = await together.put(CONFIG_BUCKET, "global", b"1")
        hub.isolate(leader)
        began_s = time.monotonic()
        late = asyncio.create_task(apart.publish_durable(fact(1), budget_s=3.0))
        await together.publish_durable(fact(2))
        told(request, f"leader {leader} cut off, until the others acknowledge", began_s)
        with pytest.raises(NotStored):
            await late
        began_s = time.monotonic()
        await hub.heal()
        await apart.publish_durable(fact(1))  # the ledger sends it again, under the same id
        told(request, "healed, until the server that was cut off stores again", began_s)
        await until_stored_are(apart, [0, 1, 2])
        await until_stored_are(together, [0, 1, 2])
        # The bucket elects a leader of its own, which may come later than the stream's; a reader asks again.
        entry = partial(apart.get, CONFIG_BUCKET, "global")
        await until_found(entry, lambda found: found == Entry("global", b"1", revision), UP_S, not_yet=(Unavailable,))


async def test_while_no_two_servers_hear_each_other_nothing_is_acknowledged_and_all_of_it_afterwards(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with hub_of_three(tmp_path) as hub:
        clients = [await hub.client(name, f"evictor/{name}") for name in NAMES]
        await clients[0].publish_durable(fact(0))
        for name in NAMES:
            hub.isolate(name)
        tries = [client.publish_durable(fact(number), budget_s=2.0) for number, client in enumerate(clients, start=1)]
        assert [type(one) for one in await asyncio.gather(*tries, return_exceptions=True)] == [NotStored] * 3
        began_s = time.monotonic()
        await hub.heal()
        await asyncio.gather(*(client.publish_durable(fact(n), budget_s=UP_S) for n, client in enumerate(clients, 1)))
        told(request, "healed, until all three acknowledge", began_s)
        await until_stored_are(clients[0], [0, 1, 2, 3])


async def _restarted(hub: HubOfThree) -> None:
    for server in hub.servers.values():
        server.kill()
    for server in hub.servers.values():
        server.start()


async def test_three_servers_that_are_killed_together_have_every_acknowledged_fact(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with hub_of_three(tmp_path) as hub:
        bus = await hub.client("hub-0", "evictor/node-a")
        for number in range(20):
            await bus.publish_durable(fact(number))
        began_s = time.monotonic()
        await _restarted(hub)
        await bus.publish_durable(fact(20), budget_s=UP_S)
        told(request, "all three killed and started, until the next fact is acknowledged", began_s)
        await until_stored_are(bus, list(range(21)))
