"""The plugin `memory_usage` within the evictor: one after the other, until what is observed is below the lower mark."""

from evictor_world import GIB, TOTAL_BYTES, WEB, MakeNode, Node, pod
from fixture_types import Virtual

from shared.contracts.sample import NodeReading

LOW, LARGE, SMALL = pod("low", priority=1), pod("large", priority=5), pod("small", priority=5)


async def using_eighty_percent(node: Node) -> Node:
    await node.create_streams()
    node.run(LOW, SMALL, used_bytes=10 * GIB)
    node.run(LARGE, used_bytes=20 * GIB)
    node.run(WEB, used_bytes=40 * GIB)
    return node


async def tick(world: Node, times: int) -> None:
    """So many periods; what no pod uses is available."""
    for _ in range(times):
        used = sum(reading.memory_usage_bytes or 0 for reading in world.readings())
        available = TOTAL_BYTES - used
        await world.tick(
            node_reading=NodeReading(
                online_cpus="0-47", memory_total_bytes=TOTAL_BYTES, memory_available_bytes=available
            )
        )


def test_one_goes_at_a_time_low_priority_first_until_less_is_used(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        plugins = {"memory_usage": {"enabled": True, "lower_percent": 55}}
        world = await using_eighty_percent(node(plugins=plugins))
        async with world.life():
            await tick(world, 4)
            assert world.evictor.kills == [LOW.uid], "the next waits for what this one brings"
            await tick(world, 60)
        assert world.evictor.kills == [LOW.uid, LARGE.uid]
        created = next(event for event in world.events if event.phase == "created")
        assert (created.observed, created.threshold) == (80 * GIB, 55 * GIB)
        assert "memory.usage from plugin: memory-usage-eviction-plugin" in created.message

    virtual(main())


def test_nobody_goes_while_it_is_switched_off(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await using_eighty_percent(node())
        async with world.life():
            await tick(world, 10)
        assert world.evictor.kills == []

    virtual(main())
