"""A ledger that fails holds every eviction until it is opened, looked through and written again."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from evictor_world import NODE
from ledger_world import BUCKET, message, record

from services.evictor.core.arbiter.guards import Refusal
from services.evictor.record.supervision import LedgerSupervisor
from shared.adapters.clock import LoopClock
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.core.evictions.intents import KeptRefusal, Record
from shared.errors import Conflict, Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Wire

COOLING = Refusal("", "cooling", says="for 15 s")


class Faulty(SqliteLedger):
    """A ledger whose file can be made to fail."""

    opened = pruned = 0
    away = full = ""
    damage = ""
    """What the next opening finds."""

    def open(self, *, first_episode: int) -> str:
        self.opened += 1
        if self.away:
            raise Unavailable(self.away, reason="ledger")
        super().open(first_episode=first_episode)
        return self.damage

    def prune(self, now_s: float) -> None:
        self.pruned += 1
        if self.full:
            raise Unavailable(self.full, reason="ledger")
        super().prune(now_s)

    def keep_refusals(self, refusals: Sequence[KeptRefusal]) -> None:
        if self.full:
            raise Unavailable(self.full, reason="ledger")
        super().keep_refusals(refusals)


class World:
    def __init__(self, folder: Path) -> None:
        self.clock, self.folder = LoopClock(), folder / "state"
        self.ledger = Faulty(self.folder)
        self.wire = Wire(MemoryBus(), self.clock, node=NODE, service="evictor")
        self.supervised = LedgerSupervisor(self.ledger, self.wire)

    async def started(self) -> LedgerSupervisor:
        self.supervised.begin()
        assert not self.supervised.maintain()
        assert self.supervised.closed == ""
        return self.supervised


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_before_it_was_written_no_ledger_works_and_then_what_is_unfinished_is_taken_up_once(world: World) -> None:
    before = SqliteLedger(world.folder)
    before.open(first_episode=1)
    before.begin(record(), BUCKET, [message("e")])
    before.keep_record("p", Record(2, 4.5))
    before.close()
    supervised = world.supervised
    supervised.begin()
    assert supervised.closed
    assert list(supervised.maintain()) == [record()]
    assert supervised.closed == ""
    assert supervised.journal.record_of("p") == Record(2, 4.5)
    assert not supervised.maintain(), "what is under way is not begun a second time"


async def test_a_ledger_that_cannot_be_opened_at_the_start_keeps_nobody_from_starting(world: World) -> None:
    world.ledger.away = "Permission denied"
    world.supervised.begin()
    assert "Permission denied" in world.supervised.closed
    world.ledger.away = ""
    await world.started()


@pytest.mark.parametrize("fault", ["away", "full"])
async def test_a_ledger_that_fails_stays_closed_until_it_is_written_and_is_then_read_again(
    world: World, fault: str
) -> None:
    supervised, ledger = await world.started(), world.ledger
    ledger.begin(record(), BUCKET, [])
    opened = ledger.opened
    supervised.lose(Unavailable("I/O error", reason="ledger"))
    setattr(ledger, fault, "No space left")
    for tries in range(1, 4):
        assert not supervised.maintain()
        assert "No space left" in supervised.closed
        assert ledger.opened == opened + tries, "each time the file is looked through from the start"
    ledger.keep_record("p", Record(2, 4.5))
    setattr(ledger, fault, "")
    assert list(supervised.maintain()) == [record()]
    assert supervised.closed == ""
    assert supervised.journal.record_of("p") == Record(2, 4.5), "what is in memory may be older than the file"


async def test_a_ledger_that_works_is_written_every_time_and_opened_once(world: World) -> None:
    supervised = await world.started()
    for pruned in range(2, 5):
        supervised.maintain()
        assert (world.ledger.opened, world.ledger.pruned) == (1, pruned)
    world.ledger.full = "No space left"
    assert not supervised.maintain()
    assert "No space left" in supervised.closed, "that it could be read is no proof"


@pytest.mark.parametrize("at_first", [True, False], ids=["at the start", "when it is opened again"])
async def test_after_a_damaged_ledger_nobody_is_evicted_in_this_life(world: World, at_first: bool) -> None:
    supervised, ledger = world.supervised, world.ledger
    if at_first:
        ledger.damage = "ledger.db was moved aside"
        supervised.begin()
    else:
        await world.started()
        supervised.lose(Unavailable("I/O error", reason="ledger"))
        ledger.damage = "ledger.db was moved aside"
        assert not supervised.maintain()
    assert "was moved aside" in supervised.closed
    ledger.damage, opened = "", ledger.opened
    supervised.lose(Unavailable("an eviction under way could not be written", reason="ledger"))
    for _ in range(3):
        assert not supervised.maintain()
        assert supervised.closed
    assert ledger.opened == opened


async def test_another_evictor_on_the_ledger_is_no_fault_to_wait_for(world: World) -> None:
    other = SqliteLedger(world.folder)
    other.open(first_episode=1)
    with pytest.raises(Conflict):
        world.supervised.begin()
    other.close()


async def test_refusals_are_written_while_the_ledger_works_and_at_the_end(world: World) -> None:
    supervised = await world.started()
    supervised.lose(Unavailable("I/O error", reason="ledger"))
    supervised.refusals.note("p", COOLING, 1.0)
    supervised.write_refusals(1.0)
    assert world.ledger.refusals() == []
    supervised.maintain()
    supervised.write_refusals(1.0)
    assert len(world.ledger.refusals()) == 1
    supervised.refusals.note("p", COOLING, 2.0)
    supervised.close()
    world.ledger.open(first_episode=1)
    assert [one.count for one in world.ledger.refusals()] == [2]
    world.ledger.close()


async def test_the_file_is_released_also_when_the_last_write_fails(world: World) -> None:
    supervised = await world.started()
    supervised.refusals.note("p", COOLING, 1.0)
    world.ledger.full = "No space left"
    supervised.close()
    other = SqliteLedger(world.folder)
    assert other.open(first_episode=1) == ""
    other.close()
