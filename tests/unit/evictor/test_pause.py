"""The hand brake: while it is pulled nobody is evicted, at whatever point an eviction is."""

import asyncio

import pytest
from evictor_world import LARGE, overcommitted
from typer.testing import CliRunner

from shared.adapters.files.pause import PauseFile
from shared.ports import ActionResult
from sublet import cli
from sublet.commands import pause


def test_while_paused_nothing_begins_and_the_reason_is_shown(node, virtual):
    async def main():
        world = await overcommitted(node())
        world.brake.set("release day")
        async with world.life():
            await world.tick(10)
            assert world.evictor.calls == []
            assert world.story == []
            shown = [c for c in world.state()["conditions"] if c["type"] == "EvictionsPaused"]
            assert shown == [{"type": "EvictionsPaused", "message": "release day"}]
            world.brake.release()
            await world.tick(3)
            assert world.evictor.kills == [LARGE.uid]
            assert not any(c["type"] == "EvictionsPaused" for c in world.state()["conditions"])

    virtual(main())


def test_it_holds_through_a_restart(node, virtual):
    async def main():
        world = await overcommitted(node())
        world.brake.set("by hand")
        for _ in range(2):
            async with world.life():
                await world.tick(4)
        assert world.evictor.calls == []

    virtual(main())


def test_an_eviction_that_has_been_announced_is_called_off(node, virtual):
    async def main():
        world = await overcommitted(node())
        world.evictor.rehearsals.extend([ActionResult("unknown")] * 50)
        async with world.life():
            await world.tick(3)
            assert world.story == [("large", "intended")]
            world.brake.set("by hand")
            await asyncio.sleep(6)
        assert world.story == [("large", "intended"), ("large", "cancelled")]
        assert "paused" in world.events[-1].detail
        assert world.evictor.kills == []

    virtual(main())


def test_it_is_looked_at_right_before_the_call(node, virtual):
    async def main():
        world = await overcommitted(node())
        rehearse = world.evictor.evict

        async def evict(pod, **how):
            if how.get("dry_run"):
                world.brake.set("in the last moment")
            return await rehearse(pod, **how)

        world.evictor.evict = evict
        async with world.life():
            await world.tick(4)
        assert world.evictor.kills == []
        assert world.story == [("large", "intended"), ("large", "cancelled")]

    virtual(main())


def test_a_brake_that_cannot_be_read_is_pulled(tmp_path):
    brake = PauseFile(tmp_path)
    brake.path.mkdir()
    assert "directory" in brake.why()


@pytest.fixture
def sublet(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBLET_STATE_DIR", str(tmp_path))
    return lambda *words: CliRunner().invoke(cli.build({"pause": pause}), list(words), catch_exceptions=False)


def test_the_commands(sublet, tmp_path):
    assert "sublet resume" in sublet("pause", "--reason", "release day").stdout
    assert PauseFile(tmp_path).why() == "release day"
    assert sublet("resume").stdout == "evictions go on\n"
    assert PauseFile(tmp_path).why() == ""
    assert sublet("resume").stdout == "evictions were not paused\n"
