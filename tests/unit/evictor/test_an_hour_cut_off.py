"""A node that is cut off from its hub for an hour goes on by itself, and tells all of it once afterwards."""

import asyncio
from collections import Counter

from evictor_world import LARGE, SMALL, MakeNode, overcommitted, pod
from fixture_types import Virtual

from shared.contracts.bus.subjects import STREAMS
from shared.errors import Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.ports import DurableMessage, Stored

HOUR_S = 3600.0


class CutOff(MemoryBus):
    """As behind a leaf: the bus is there all the time. What goes to the hub gets there and its answer is lost, or it
    does not get there at all.
    """

    answers_lost = cut = False

    async def publish_durable(self, message: DurableMessage, *, budget_s: float = 20.0) -> Stored:
        if self.cut:
            raise Unavailable("no hub", reason="offline")
        stored = await super().publish_durable(message, budget_s=budget_s)
        if self.answers_lost:
            raise Unavailable("the answer got lost", reason="no_ack")
        return stored

    async def replay(self, *args: object, **more: object) -> list[object]:  # type: ignore[override]
        if self.cut:
            raise Unavailable("no hub", reason="offline")
        return await super().replay(*args, **more)  # type: ignore[arg-type, return-value]


def test_an_hour_without_the_hub_costs_no_fact_and_doubles_none(node: MakeNode, virtual: Virtual) -> None:
    assert max(spec.duplicate_window_s for spec in STREAMS) < HOUR_S, "what is sent again then is known to nobody"
    third = pod("third", cpu=24_000)

    async def main() -> None:
        world = await overcommitted(node(cooling_s=0, plugins={"reclaimed_overcommit": {"cooling_s": 0}}))
        bus = CutOff(world.broker, world.clock)
        async with world.life(bus=bus):
            bus.answers_lost = True
            await world.tick(4)
            assert world.evictor.kills == [LARGE.uid]
            assert world.story, "some of it is stored, and the node does not know"
            bus.cut, bus.answers_lost = True, False
            told = len(world.story)
            await asyncio.sleep(HOUR_S / 2)
            world.run(third)
            await world.tick(10)
            assert third.uid in world.evictor.kills, "a node without its hub evicts by itself"
            await asyncio.sleep(HOUR_S / 2)
            assert len(world.story) == told
            bus.cut = False
            await asyncio.sleep(60)
            assert world.state()["outbox"] == 0
        per_fact = Counter((event.intent_id, event.phase) for event in world.events)
        assert set(per_fact.values()) == {1}, "nothing twice"
        for uid in world.evictor.kills:
            assert [e.phase for e in world.events if e.pod_uid == uid] == ["intended", "created", "succeeded"]
        assert SMALL.uid not in world.kills or len(world.kills) == 3

    virtual(main())
