"""What a viewer of the live page is sent: everything at first, then what changed; a node's CPUs while he looks."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from fixture_types import Virtual
from live_world import World

from services.central.core.live_page.fleet import COLUMNS
from services.central.live_page.viewers import FRAME_S, MAX_VIEWERS
from shared.contracts.bus.subjects import CONFIG_BUCKET, shard_subject, state_subject
from shared.contracts.cluster.cpus import CpuMap, CpuPool, CpuTable, CpuWatch
from shared.contracts.cluster.pauses import PAUSES_KEY, Pause, Pauses
from shared.contracts.readiness import Readiness
from shared.errors import Refused


async def frame(frames: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await anext(frames))
    return found


def frames_of(world: World, node: str | None = None) -> Any:
    assert world.server.frames is not None
    return world.server.frames(node)


def test_the_first_frame_has_all_nodes_and_later_ones_what_changed(virtual: Virtual) -> None:
    async def story() -> None:
        async with World().running() as world:
            await world.beat("a")
            await world.beat("b")
            await world.offer("a")
            await asyncio.sleep(1.1)
            frames = frames_of(world)
            first = await frame(frames)
            assert [row[0] for row in first["nodes"]] == ["a", "b"]
            assert (first["first"], tuple(first["columns"])) == (True, COLUMNS)
            assert (await frame(frames))["nodes"] == []
            await world.beat("b", why="no pods")
            await asyncio.sleep(FRAME_S)
            (row,) = (await frame(frames))["nodes"]
            told = dict(zip(COLUMNS, row, strict=True))
            assert (told["name"], told["state"], told["why"]) == ("b", "unready", "qrm: no pods")
            await frames.aclose()
            assert world.app.state()["viewers"] == 0

    virtual(story())


def test_nodes_whose_heartbeats_the_hub_divides_are_shown_as_well(virtual: Virtual) -> None:
    async def story() -> None:
        async with World().running() as world:
            wire = world.node("a")
            subject = shard_subject(1).replace("*", "a")
            await wire.bus.publish(subject, wire.stamp(Readiness, ready=True).encode())
            await asyncio.sleep(1.1)
            frames = frames_of(world)
            assert [row[0] for row in (await frame(frames))["nodes"]] == ["a"]
            await frames.aclose()

    virtual(story())


def test_a_silent_node_is_late_only_while_the_bus_is_heard(virtual: Virtual) -> None:
    async def story(*, bus_hears: bool) -> str:
        async with World().running() as world:
            await asyncio.sleep(60)
            await world.beat("a")
            if not bus_hears:
                world.bus.go_offline()
            await asyncio.sleep(40)
            (row,) = (await frame(frames_of(world)))["nodes"]
            return str(row[1])

    assert virtual(story(bus_hears=True)) == "late"
    assert virtual(story(bus_hears=False)) == "unknown"


def test_a_node_is_asked_for_its_cpus_while_somebody_looks_and_no_longer(virtual: Virtual) -> None:
    async def story() -> None:
        async with World().running() as world:
            asked: list[str] = []
            await world.bus.subscribe(
                state_subject(CpuWatch, "*"), lambda m: asked.append(CpuWatch.decode(m.data).node)
            )
            await world.beat("a")
            await asyncio.sleep(20)
            assert asked == []
            frames, wire = frames_of(world, "a"), world.node("a")
            assert (await frame(frames))["cpus"] is None
            await asyncio.sleep(0.1)
            assert asked == ["a"]
            table = CpuTable(ids=(1, 0), sockets=(0, 0), numas=(0, 0), l3s=(0, 0), cores=(1, 0), busy_percent=(7, None))
            await wire.publish(wire.stamp(CpuMap, table=table, pools=(CpuPool(pool="share", cpus="1"),)))
            cpus = (await frame(frames))["cpus"]
            assert (cpus["cpus"], cpus["of"]) == ([[0, 0, 0, 0, 0, None], [0, 0, 0, 1, 1, 7]], [[], [0]])
            assert (await frame(frames))["cpus"] is None  # nothing newer
            await frames.aclose()
            asked.clear()
            await asyncio.sleep(30)
            assert asked == []

    virtual(story())


def test_there_is_a_bound_on_viewers(virtual: Virtual) -> None:
    async def story() -> None:
        async with World().running() as world:
            there = [frames_of(world) for _ in range(MAX_VIEWERS)]
            for one in there:
                await anext(one)
            with pytest.raises(Refused, match="viewers are there already"):
                await anext(frames_of(world))
            await there[0].aclose()
            assert (await frame(frames_of(world)))["first"]

    virtual(story())


def test_whose_evictions_are_paused_stands_in_each_frame_until_it_is_over(virtual: Virtual) -> None:
    async def story() -> None:
        async with World().running() as world:
            await world.bus.ensure_bucket(CONFIG_BUCKET)
            pause = Pause(pool="green", reason="rebuild", until=world.clock.wall() + timedelta(seconds=30))
            await world.bus.put(CONFIG_BUCKET, PAUSES_KEY, Pauses(pauses=(pause,)).encode())
            await asyncio.sleep(1.1)
            assert (await frame(frames_of(world)))["evictions_paused"] == [pause.words]
            await asyncio.sleep(30)
            assert (await frame(frames_of(world)))["evictions_paused"] == []
            await world.bus.put(CONFIG_BUCKET, PAUSES_KEY, b"soon")
            await asyncio.sleep(1.1)
            (why,) = (await frame(frames_of(world)))["evictions_paused"]
            assert why.startswith("pauses: ")

    virtual(story())
