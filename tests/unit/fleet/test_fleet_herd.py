"""A herd beats once a period for each node, spread over it, and each of its nodes takes a configuration by itself."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from fixture_types import Virtual

from shared.adapters.clock import LoopClock
from shared.contracts.bus.subjects import CONFIG_BUCKET, GLOBAL_CONFIG_KEY
from shared.contracts.readiness import Readiness
from shared.fakes.memory_bus import MemoryBus
from sublet.fleet.herd import READ, Herd, of_connections
from sublet.fleet.simulated_node import SimulatedNode


class Heard:
    """A herd of ten nodes, and what others hear of it."""

    def __init__(self) -> None:
        self.bus, self.clock = MemoryBus(), LoopClock()
        self.hub = MemoryBus(self.bus.broker)
        self.nodes = [SimulatedNode(f"n{number}") for number in range(10)]
        self.herd = Herd(self.bus, self.clock, self.nodes, 10.0)
        self.beats: list[tuple[float, Readiness]] = []

    async def play(self, story: Callable[["Heard"], Awaitable[None]]) -> None:
        def note(received: object) -> None:
            self.beats.append((self.clock.monotonic(), Readiness.decode(received.data)))  # type: ignore[attr-defined]

        await self.hub.subscribe("sublet.cluster.v1.ready.*", note)
        await self.hub.serve(READ, lambda _question: b"{}")
        await self.hub.ensure_bucket(CONFIG_BUCKET)
        task = asyncio.create_task(self.herd.run())
        await story(self)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def counts(self) -> Counter[str]:
        return Counter(beat.node for _, beat in self.beats)


def played(virtual: Virtual, story: Callable[[Heard], Awaitable[None]]) -> Heard:
    async def whole() -> Heard:
        heard = Heard()
        await heard.play(story)
        return heard

    result: Heard = virtual(whole())
    return result


def test_each_node_beats_once_a_period_at_a_time_of_its_own(virtual: Virtual) -> None:
    async def story(_heard: Heard) -> None:
        await asyncio.sleep(30)

    heard = played(virtual, story)
    assert set(heard.counts().values()) == {3}
    firsts = [at_s for at_s, beat in heard.beats if beat.seq == 1]
    assert len({round(at_s - firsts[0]) for at_s in firsts}) == 10


def test_a_silent_node_says_nothing_and_the_others_go_on(virtual: Virtual) -> None:
    async def story(heard: Heard) -> None:
        heard.nodes[3].silent = True
        await asyncio.sleep(30)

    counts = played(virtual, story).counts()
    assert counts["n3"] == 0
    assert len(counts) == 9


def test_after_an_outage_all_beat_within_a_second_of_its_end(virtual: Virtual) -> None:
    back_s = 0.0

    async def story(heard: Heard) -> None:
        nonlocal back_s
        await asyncio.sleep(12)
        heard.bus.go_offline()
        await asyncio.sleep(20)
        heard.beats.clear()
        heard.bus.go_online()
        back_s = heard.clock.monotonic()
        await asyncio.sleep(1.1)

    heard = played(virtual, story)
    assert {beat.node for _, beat in heard.beats} == {node.name for node in heard.nodes}


def test_every_node_takes_a_configuration_and_says_so_within_three_seconds(virtual: Virtual) -> None:
    async def story(heard: Heard) -> None:
        await asyncio.sleep(11)
        heard.nodes[4].silent = True
        revision = await heard.hub.put(CONFIG_BUCKET, GLOBAL_CONFIG_KEY, b"{}")
        await asyncio.sleep(3.1)
        said = {beat.node: beat.config_rev for _, beat in heard.beats}
        assert {node for node, known in said.items() if known == revision} == said.keys() - {"n4"}

    played(virtual, story)


def test_nodes_are_dealt_out_over_all_connections() -> None:
    nodes = [SimulatedNode(f"n{number}") for number in range(7)]
    dealt = of_connections(nodes, 3)
    assert [len(some) for some in dealt] == [3, 2, 2]
    assert {node.name for some in dealt for node in some} == {node.name for node in nodes}
