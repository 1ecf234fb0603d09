"""Pauses of cluster and pools at a node: they hold through restarts, and where its pool is not known."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from evictor_world import LARGE, MakeNode, overcommitted
from fixture_types import Virtual

from services.evictor.adapters.cluster_pauses import NAME, ClusterPauses
from shared.adapters.clock import LoopClock
from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.contracts.cluster.pauses import PAUSES_KEY, Pause, Pauses
from shared.errors import Unavailable
from shared.ports import Entry

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def entry(*pauses: Pause) -> bytes:
    return Pauses(pauses=pauses).encode()


async def green() -> str:
    return "green"


async def unknown() -> str:
    raise Unavailable("the API server is away")


def test_a_pause_of_its_pool_or_of_the_cluster_stops_a_node_until_it_is_taken_away(
    node: MakeNode, virtual: Virtual
) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.cluster_pauses = ClusterPauses(world.folder, green, world.clock, lambda: NOW)
        await world.bus.ensure_bucket(CONFIG_BUCKET)
        for pause in (Pause(pool="*", reason="release day"), Pause(pool="green", reason="rebuild")):
            await world.bus.put(CONFIG_BUCKET, PAUSES_KEY, entry(pause))
            async with world.life():
                await world.tick(5)
                assert world.evictor.calls == []
                (shown,) = [c["message"] for c in world.state()["conditions"] if c["type"] == "EvictionsPaused"]
                assert shown == pause.words
        await world.bus.put(CONFIG_BUCKET, PAUSES_KEY, entry(Pause(pool="blue", reason="another pool")))
        async with world.life():
            await world.tick(4)
        assert world.evictor.kills == [LARGE.uid]

    virtual(main())


def test_a_node_that_restarts_without_its_hub_still_knows_and_ends_it_by_its_own_clock(
    tmp_path: Path, virtual: Virtual
) -> None:
    async def main() -> None:
        now = [NOW]
        pauses = ClusterPauses(tmp_path, green, LoopClock(), lambda: now[0])
        pauses.follow_entry(Entry(PAUSES_KEY, entry(Pause(pool="*", reason="x", until=NOW + timedelta(hours=1))), 1))
        again = ClusterPauses(tmp_path, green, LoopClock(), lambda: now[0])
        assert again.why()
        now[0] += timedelta(hours=1)
        assert again.why() == ""

    virtual(main())


def test_while_the_pool_is_not_known_the_pause_of_any_pool_counts(tmp_path: Path, virtual: Virtual) -> None:
    async def main() -> None:
        for pool, paused in ((unknown, True), (green, False)):
            pauses = ClusterPauses(tmp_path, pool, LoopClock(), lambda: NOW)
            pauses.follow_entry(Entry(PAUSES_KEY, entry(Pause(pool="blue", reason="x")), 1))
            work = asyncio.create_task(pauses.run())
            await asyncio.sleep(1)
            assert bool(pauses.why()) is paused
            work.cancel()

    virtual(main())


@pytest.mark.parametrize("value", [b"x", b"[]", b'{"pauses": 1}', b" " * (1 << 17)])
def test_an_entry_that_cannot_be_read_pauses_until_one_can(tmp_path: Path, value: bytes) -> None:
    pauses = ClusterPauses(tmp_path, green, LoopClock(), lambda: NOW)
    pauses.follow_entry(Entry(PAUSES_KEY, value, 1))
    assert "cannot be read" in pauses.why()
    pauses.follow_entry(Entry(PAUSES_KEY, entry(), 2))
    assert pauses.why() == ""
    (tmp_path / NAME).write_bytes(value)
    assert NAME in ClusterPauses(tmp_path, green, LoopClock(), lambda: NOW).why()


def test_other_entries_are_none_of_its_business_and_a_deleted_one_pauses_nobody(tmp_path: Path) -> None:
    pauses = ClusterPauses(tmp_path, green, LoopClock(), lambda: NOW)
    pauses.follow_entry(Entry("global", b"x", 1))
    assert pauses.why() == ""
    pauses.follow_entry(Entry(PAUSES_KEY, entry(Pause(pool="*", reason="x")), 2))
    pauses.follow_entry(Entry(PAUSES_KEY, None, 3))
    assert pauses.why() == ""
