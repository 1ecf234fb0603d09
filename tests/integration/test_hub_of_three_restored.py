"""A hub of three that comes back from copies of its disks: all goes on, nothing is doubled, and nodes tell the rest."""

import asyncio
import shutil
from pathlib import Path

import pytest
from evictor_rig import TOO_LITTLE_MILLIS, VICTIM, Voices, evictor_app
from hub_of_three import NAMES, UP_S, HubOfThree, hub_of_three
from until_met import until_found, until_met

from services.central.adapters.streams import FactStreams
from services.evictor.record import look_back
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus
from shared.contracts.bus.subjects import CONFIG_BUCKET, EVENTS_STREAM, INTENTS_STREAM
from shared.errors import SubletError
from shared.ports import Entry
from shared.wire import Wire

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]

DISK = "store"
Facts = list[tuple[str, bytes]]


def back_up(hub: HubOfThree, folder: Path, backup: Path) -> None:
    """Copy the disks one after the other, each while its server is down, as docs/state.md tells."""
    for name in NAMES:
        hub.servers[name].stop()
        shutil.copytree(folder / name / DISK, backup / name)
        hub.servers[name].start()


def lose_and_restore(hub: HubOfThree, folder: Path, backup: Path) -> None:
    """All three die with their disks, and come back with those of the backup."""
    for server in hub.servers.values():
        server.kill()
    for name in NAMES:
        shutil.rmtree(folder / name / DISK)
        shutil.copytree(backup / name, folder / name / DISK)
        hub.servers[name].start()


async def facts(bus: NatsBus) -> Facts:
    """What both streams hold, in order."""
    streams = [await bus.replay(stream, ">") for stream in (INTENTS_STREAM, EVENTS_STREAM)]
    return [(one.subject, one.data) for held in streams for one in held]


async def hold(bus: NatsBus, count: int) -> Facts:
    """The facts, as soon as there are so many."""
    return await until_found(lambda: facts(bus), lambda found: len(found) == count, UP_S, not_yet=(SubletError,))


async def evict(voices: Voices, uid: str = VICTIM.uid) -> None:
    """A pod has to go; any but the first one comes for it."""
    if uid != VICTIM.uid:
        voices.run(VICTIM.model_copy(update={"uid": uid, "name": f"batch-{uid}"}))

    async def gone() -> bool:
        await voices.speak(TOO_LITTLE_MILLIS)
        return not voices.evictor.running(uid)

    await until_met(gone, UP_S)


async def put(bus: NatsBus, value: bytes) -> int:
    """Central writes the configuration of all nodes."""

    async def written() -> int:
        return await bus.put(CONFIG_BUCKET, "global", value)

    return await until_found(written, bool, UP_S, not_yet=(SubletError,))


async def test_what_came_after_the_backup_is_told_again_and_central_and_evictors_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_back, "LOOK_BACK_S", 5.0)
    folder, backup = tmp_path / "hub", tmp_path / "backup"
    async with hub_of_three(folder) as hub:
        node, central = await hub.client("hub-0", "evictor/node-a"), await hub.client("hub-1", "central/c")
        voices, heard = Voices(node), list[Entry]()
        voices.evictor.lives_on_s = 0
        wire = Wire(node, SystemClock(), node=voices.wire.node, service="evictor")
        # Cooling: a sample from before a pod was gone, read after it, asks for no second eviction.
        app = evictor_app(wire, tmp_path / "state", voices.evictor, announce_s=5, cooling_s=5)
        working = asyncio.create_task(app.run())
        await node.watch(CONFIG_BUCKET, heard.append, keys=("global",))
        await evict(voices)
        before = await hold(central, 4)
        assert await put(central, b"1") == 1
        await asyncio.to_thread(back_up, hub, folder, backup)
        await evict(voices, "b2")
        await put(central, b"2")
        whole = await hold(central, 8)
        assert set(before) < set(whole)

        await asyncio.to_thread(lose_and_restore, hub, folder, backup)
        # The copies do not have the second one, and the node tells it.
        assert sorted(await hold(central, 8)) == sorted(whole)
        assert await FactStreams(central, SystemClock()).ensure(3), "central keeps the streams that came back"
        assert await put(central, b"3") == 2, "a number that was given to what is lost"
        await until_met(lambda: _is(heard, b"3"), UP_S)
        await evict(voices, "b3")
        last = await hold(central, 12)
        assert len(set(last)) == 12, "nothing is there twice"
        assert set(whole) <= set(last)
        assert voices.evictor.kills == [VICTIM.uid, "b2", "b3"]
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await app.close()
        await node.drain()
        await central.drain()


async def _is(heard: list[Entry], value: bytes) -> bool:
    return bool(heard) and heard[-1].value == value
