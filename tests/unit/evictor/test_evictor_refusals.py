"""Every no is kept with the guard that said it, over restarts, and without a write at every sample."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from evictor_world import MEMORY, RECLAIMED, SMALL, WEB, MakeNode, Node, overcommitted, pod, short_of_memory
from fixture_types import Virtual

from services.evictor.core.arbiter.guards import _TEXTS, Guard, Refusal, spared_by
from services.evictor.record.refusals import KEEP, SHOWN, WRITE_EVERY_S, RefusalBook
from shared.adapters.ledger import upkeep as ledger_upkeep
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.core.evictions.intents import KeptRefusal
from shared.errors import Unavailable
from shared.ports import ActionResult

COOLING = Refusal("", "cooling", says="for 15 s")


class CountingLedger(SqliteLedger):
    writes = 0
    broken = False

    def keep_refusals(self, refusals: Sequence[KeptRefusal]) -> None:
        if self.broken:
            raise Unavailable("full", reason="ledger")
        type(self).writes += 1
        super().keep_refusals(refusals)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[CountingLedger]:
    CountingLedger.writes = 0
    ledger = CountingLedger(tmp_path / "state")
    ledger.open(first_episode=1)
    yield ledger
    ledger.close()


def test_an_hour_of_the_same_no_is_written_once_a_minute(ledger: CountingLedger) -> None:
    book = RefusalBook(ledger)
    for second in range(3600):
        book.note("p", COOLING, float(second))
        book.write(float(second))
    assert ledger.writes <= 3600 / WRITE_EVERY_S + 1
    book.write(3600.0, all_of_it=True)
    (kept,) = ledger.refusals()
    assert kept == KeptRefusal("", "", "p", "cooling", "for 15 s", 3600, 0.0, 3599.0)


def test_a_new_no_is_written_at_once_and_takes_the_others_along(ledger: CountingLedger) -> None:
    book = RefusalBook(ledger)
    book.note("p", COOLING, 1.0)
    book.write(1.0)
    book.note("p", COOLING, 2.0)
    book.note("p", Refusal("default/a", "burst", "a1", "3 of 3"), 2.0)
    book.write(2.0)
    assert ledger.writes == 2
    assert [(r.guard, r.count) for r in ledger.refusals()] == [("cooling", 2), ("burst", 1)]
    book.write(99.0)
    assert ledger.writes == 2, "nothing is new: nothing is written"


def test_what_could_not_be_written_is_written_later(ledger: CountingLedger) -> None:
    book = RefusalBook(ledger)
    ledger.broken = True
    book.note("p", COOLING, 1.0)
    with pytest.raises(Unavailable):
        book.write(1.0)
    ledger.broken = False
    book.note("p", COOLING, 2.0)
    book.load()
    book.write(2.0)
    assert [r.count for r in ledger.refusals()] == [2]


def test_the_newest_are_shown_first_with_their_ages_and_a_restart_keeps_them(ledger: CountingLedger) -> None:
    book = RefusalBook(ledger)
    for second in range(SHOWN + 5):
        book.note("p", Refusal(f"default/p{second}", "burst", f"a{second}", "3 of 3"), float(second))
    book.write(200.0)
    book = RefusalBook(ledger)
    book.load()
    shown = book.state(300.0)
    assert len(shown) == SHOWN
    assert shown[0] == {
        "pod": "default/p104", "uid": "a104", "plugin": "p", "guard": "burst", "why": "3 of 3", "count": 1,
        "first_age_s": 196.0, "last_age_s": 196.0,
    }  # fmt: skip


def test_memory_and_ledger_keep_a_bounded_number(ledger: CountingLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    assert KEEP == ledger_upkeep.KEEP_REFUSALS
    monkeypatch.setattr("services.evictor.record.refusals.KEEP", 3)
    monkeypatch.setattr(ledger_upkeep, "KEEP_REFUSALS", 3)
    book = RefusalBook(ledger)
    for second in range(9):
        book.note("p", Refusal(f"default/p{second}", "burst", f"a{second}"), float(second))
    book.write(9.0)
    book.forget(9.0)
    ledger.prune(9.0)
    assert [r["pod"] for r in book.state(9.0)] == ["default/p8", "default/p7", "default/p6"]
    assert sorted(r.pod for r in ledger.refusals()) == ["default/p6", "default/p7", "default/p8"]
    ledger.prune(9.0 + ledger_upkeep.KEEP_REFUSALS_S)
    assert ledger.refusals() == []


@pytest.mark.parametrize("guard", sorted(_TEXTS))
def test_every_guard_of_a_pod_has_a_sentence(guard: Guard) -> None:
    refusal = spared_by(guard, pod("p", priority=7, phase="Succeeded"))
    assert (refusal.pod, refusal.uid, refusal.why) == ("default/p", pod("p").uid, guard)
    assert len(refusal.says) > 20
    assert "{" not in refusal.says


def told(world: Node, guard: str) -> list[dict[str, Any]]:
    return [r for r in world.state()["refusals"] if r["guard"] == guard]


def test_a_plugin_that_waits_says_which_guard_holds_it(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(cooling_s=15), *(pod(f"b{i}") for i in range(9)))
        async with world.life():
            await world.tick(1)
            (unconfirmed,) = told(world, "unconfirmed")
            assert (unconfirmed["plugin"], unconfirmed["pod"], unconfirmed["uid"]) == (MEMORY, "", "")
            assert unconfirmed["why"] == "seen in 1 of the 2 samples in a row that it takes"
            await world.tick(9)
            (cooling,) = told(world, "cooling")
            assert "the next may begin in" in cooling["why"]
            assert cooling["count"] > 5
            await world.tick(50)
            (ineffective,) = told(world, "ineffective")
            assert "3 rounds of evictions brought no relief; the bound is 3" in ineffective["why"]
        assert len(world.evictor.kills) == 3
        async with world.life():
            (again,) = told(world, "ineffective")
            assert again["why"] == ineffective["why"]
            assert again["count"] == ineffective["count"], "what was not written before the stop is lost"

    virtual(main())


def test_a_pod_that_is_spared_says_which_guard_spared_it(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(cooling_s=0), WEB, SMALL, pod("sys", "system_cores"))
        world.evictor.lives_on_s = 3600
        async with world.life():
            await world.tick(60)
            (tenant,) = told(world, "tenant_before_reclaimed")
            assert (tenant["pod"], tenant["uid"], tenant["plugin"]) == ("default/web", WEB.uid, MEMORY)
        assert world.evictor.kills == [SMALL.uid]

    virtual(main())


def test_the_rate_the_burst_and_the_budget_say_no_with_their_numbers(node: MakeNode, virtual: Virtual) -> None:
    section = {
        "cooling_s": 0, "max_without_relief": 100, "evictions_per_minute": 2, "victims_per_round": "enough", "burst": 1,
        "budgets": {"namespace": {"limit": 3}},
    }  # fmt: skip

    async def main() -> None:
        world = await overcommitted(node(**section))
        world.offered_millis = 1
        world.run(*(pod(f"b{i}", cpu=9_000 - i) for i in range(9)))
        async with world.life():
            await world.tick(60)
            (burst, *_), (rate, *_), (budget, *_) = (
                told(world, g) for g in ("burst", "rate_limit", "namespace_budget")
            )
        assert len(world.evictor.kills) == 3
        assert "1 of 1 evictions of this round" in burst["why"]
        assert "2 evictions a minute" in rate["why"]
        assert "3 of 3 evictions of namespace default in 3600 s" in budget["why"]
        assert all(r["uid"] and r["pod"].startswith("default/") for r in (burst, rate, budget))

    virtual(main())


def test_a_pause_and_a_lost_ledger_are_guards_too(node: MakeNode, virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        ledger = CountingLedger(world.folder)
        async with world.life(ledger=ledger):
            world.brake.set("maintenance")
            await world.tick(4)
            (paused,) = told(world, "paused")
            assert paused["plugin"] == RECLAIMED
            assert "maintenance" in paused["why"]
            ledger.broken = True
            await world.tick(70)
            (closed,) = told(world, "ledger_closed")
            assert "nobody is evicted" in closed["why"]
        assert (world.evictor.calls, world.story) == ([], []), "nothing was even begun"

    virtual(main())


def test_a_pod_that_could_not_be_evicted_says_so(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node(cooling_s=0))
        world.evictor.rehearsals.append(ActionResult("wait", "its budget is spent"))
        async with world.life():
            await world.tick(4)
            (refused,) = told(world, "backing_off")
            assert refused["pod"] == "default/large"

    virtual(main())


def test_a_node_that_has_evicted_says_that_it_cools_and_for_how_long(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node(cooling_s=15))
        async with world.life():
            await world.tick(3)
            (cooling,) = [c for c in world.state()["conditions"] if c["type"] == "EvictionCooling"]
            assert 13 < cooling["left_s"] <= 14.1
            assert RECLAIMED in cooling["message"]
            await world.tick(15)
            assert [c for c in world.state()["conditions"] if c["type"] == "EvictionCooling"] == []

    virtual(main())


def test_a_rehearsal_cools_no_node(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node(plugins={"reclaimed_overcommit": {"mode": "dry-run"}}))
        async with world.life():
            await world.tick(4)
            assert [c for c in world.state()["conditions"] if c["type"] == "EvictionCooling"] == []
        assert world.evictor.calls

    virtual(main())


def test_a_ledger_that_cannot_take_the_last_refusals_is_given_back_all_the_same(
    node: MakeNode, virtual: Virtual
) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        ledger = CountingLedger(world.folder)
        async with world.life(ledger=ledger):
            await world.tick(3)
            ledger.broken = True
        with contextlib.closing(SqliteLedger(world.folder)) as other:
            assert other.open(first_episode=1) == ""

    virtual(main())
