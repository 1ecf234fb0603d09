"""An evictor leaves a whole history in stream and ledger, also while it runs; and what is taken away is missed."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from evictor_world import MakeNode, overcommitted
from fixture_types import Virtual

from shared.adapters.ledger.reader import read_ledger
from shared.contracts.bus.subjects import EVENTS_STREAM
from shared.errors import Unavailable
from sublet.commands.audit import audited


def test_evictions_leave_a_whole_history_and_a_taken_event_is_missed(virtual: Virtual, node: MakeNode) -> None:
    async def story() -> None:
        world = await overcommitted(node(cooling_s=0.1))
        async with world.life():
            await world.tick(4)
            await asyncio.sleep(20)
            found = await audited(world.bus, world.folder, now=world.clock.wall())
            assert found.whole
            assert (found.events, found.intents, found.open, found.waiting) == (3, 1, 0, 0)
        messages = world.broker.streams[EVENTS_STREAM].messages
        taken = messages.pop(1)
        (fault,) = [
            f for f in (await audited(world.bus, world.folder, now=world.clock.wall())).faults if "stored as" in f.what
        ]
        assert fault.kind == "lost"
        messages.append(taken)
        assert "out_of_order" in {
            f.kind for f in (await audited(world.bus, world.folder, now=world.clock.wall())).faults
        }

    virtual(story())


def test_rehearsals_are_told_counted_apart_and_whole(virtual: Virtual, node: MakeNode) -> None:
    async def story() -> None:
        world = await overcommitted(node(plugins={"reclaimed_overcommit": {"mode": "dry-run"}}))
        async with world.life():
            await world.tick(4)
            await asyncio.sleep(20)
            state = world.state()
            found = await audited(world.bus, world.folder, now=world.clock.wall())
        assert found.whole
        assert (found.events, found.intents, found.pods) == (0, 0, 0)
        assert found.rehearsed_events == 2 * found.rehearsals > 0
        assert (state["evicted_last_hour"], state["rehearsed_last_hour"]) == (0, found.rehearsals)
        stored = world.broker.streams[EVENTS_STREAM].messages
        assert {message.headers["ce-mode"] for message in stored} == {"dry-run"}

    virtual(story())


def test_without_a_ledger_there_is_nothing_to_compare(tmp_path: Path) -> None:
    assert read_ledger(tmp_path) == []


def test_a_file_that_is_no_ledger_is_said(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("no database")
    with pytest.raises(Unavailable, match=r"ledger\.db"):
        read_ledger(tmp_path)


def test_reading_takes_no_lock(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "ledger.db")
    db.executescript(
        "CREATE TABLE outbox (intent, msg_id, sequence, published_at_s);"
        "CREATE TABLE intents (row, id, pod_uid, step, pod, intent); BEGIN IMMEDIATE;"
    )
    assert read_ledger(tmp_path) == []
    db.close()
