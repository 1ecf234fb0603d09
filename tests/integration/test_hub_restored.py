"""A hub that comes back from an older copy of its disk: what the copy has is there, the rest is named, all goes on."""

import asyncio
import json
import shutil
from pathlib import Path

import nats
from fixture_types import Until
from slow_machines import patience_s
from test_evictor_audit import command, evict_one

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.subjects import CONFIG_BUCKET, EVENTS_STREAM, STREAMS
from shared.core.bus.durable import EventFilter, wanted_durable
from shared.ports import DurableMessage, Entry

EVENT = "sublet.cluster.v1.event.eviction.created.team-a.node-a"
STORE = "jetstream"


def fact(number: int) -> DurableMessage:
    return DurableMessage(EVENT, b"%d" % number, msg_id=f"e{number}")


def copy_of(server: NatsServer, folder: Path, backup: Path) -> None:
    """A copy of the disk while the server is down, as a snapshot of its volume is."""
    server.stop()
    shutil.copytree(folder / STORE, backup)
    server.start()


def restore(server: NatsServer, folder: Path, backup: Path) -> None:
    server.kill()
    shutil.rmtree(folder / STORE)
    shutil.copytree(backup, folder / STORE)
    server.start()


async def test_what_the_copy_has_is_there_and_streams_durables_and_configuration_go_on_from_it(
    server: NatsServer, tmp_path: Path, until: Until
) -> None:
    bus = await connect(server.url, name="evictor/node-a", connect_timeout_s=10, clock=SystemClock())
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    await bus.ensure_bucket(CONFIG_BUCKET)
    await bus.durables.put(wanted_durable("team-a", EventFilter(namespaces=["team-a"])))
    team = await nats.connect(server.url)
    heard: list[Entry] = []
    await bus.watch(CONFIG_BUCKET, heard.append, keys=("global",))

    async def pulled(count: int) -> list[int]:
        reader = await team.jetstream().pull_subscribe("", durable="team-a", stream=EVENTS_STREAM)
        found = []
        for _ in range(count):
            [message] = await reader.fetch(1, timeout=patience_s(10))
            await message.ack_sync(timeout=patience_s(10))
            found.append(int(message.data))
        await reader.unsubscribe()
        return found

    for number in range(10):
        await bus.publish_durable(fact(number))
    await bus.put(CONFIG_BUCKET, "global", b"1")
    await until(lambda: bool(heard))
    assert await pulled(5) == [0, 1, 2, 3, 4]
    await asyncio.to_thread(copy_of, server, tmp_path / "nats", tmp_path / "backup")
    await until(lambda: bus.connected and team.is_connected)
    for number in range(10, 15):
        await bus.publish_durable(fact(number))
    await bus.put(CONFIG_BUCKET, "global", b"2")
    await until(lambda: heard[-1].value == b"2")
    assert await pulled(5) == [5, 6, 7, 8, 9]

    await asyncio.to_thread(restore, server, tmp_path / "nats", tmp_path / "backup")
    await until(lambda: bus.connected and team.is_connected)
    assert [int(one.data) for one in await bus.replay(EVENTS_STREAM, ">")] == list(range(10))
    # A watch takes the older revision for what is in force, and the next one after it.
    await until(lambda: heard[-1] == Entry("global", b"1", 1))
    assert await bus.put(CONFIG_BUCKET, "global", b"3") == 2
    await until(lambda: heard[-1] == Entry("global", b"3", 2))
    # A team gets again what it had acknowledged since; its ids are those of before.
    assert await pulled(5) == [5, 6, 7, 8, 9]
    # What the copy has is still known by its id, and what is sent again for it is stored once.
    for number in (9, 12):
        await bus.publish_durable(fact(number))
    assert [int(one.data) for one in await bus.replay(EVENTS_STREAM, ">")] == [*range(10), 12]
    await team.close()
    await bus.drain()


def test_the_audit_of_a_node_names_each_fact_that_the_copy_does_not_have(server: NatsServer, tmp_path: Path) -> None:
    async def streams() -> None:
        bus = await connect(server.url, name="central", connect_timeout_s=10, clock=SystemClock())
        for spec in STREAMS:
            await bus.ensure_stream(spec)
        await bus.drain()

    asyncio.run(streams())
    copy_of(server, tmp_path / "nats", tmp_path / "backup")
    asyncio.run(evict_one(server.url, tmp_path / "state", "none", ""))
    whole = command(server.url, tmp_path / "state", "--output", "json")
    assert json.loads(whole.stdout)["whole"] is True
    restore(server, tmp_path / "nats", tmp_path / "backup")
    found = command(server.url, tmp_path / "state")
    assert found.returncode == 1
    lost = [line for line in found.stdout.splitlines() if line.startswith("lost: ")]
    assert sum("is not in the stream" in line for line in lost) == 4, "three events and the intent"
