"""What is offered by NUMA node reaches the plugins, and where pods lie is known without a scheduler's word."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from evictor_world import PERIOD_S, MakeNode, Node, pod, sample_fields
from fixture_types import Virtual
from plugin_world import idle, view

from services.evictor.core.plugin_kit.pod_figures import bound_numas
from shared.contracts.allocation import Allocation, NumaOffer, PodAllocation
from shared.contracts.sample import NodeSample
from shared.core.pods.qos_annotations import NUMA_BIND_RESULT

SECTION, PLUGIN = "reclaimed_numa_overcommit", "reclaimed-numa-resource-pressure-eviction-plugin"
HERE, THERE = pod("here", cpu=9000), pod("there", cpu=2000)


async def minutes(world: Node, *, parts: Any, periods: int, silent_periods: int = 0, status: str = "applied") -> None:
    """Allocations with so much on each NUMA node, then samples alone; HERE lies on node 1, THERE on node 0."""
    qrm, metrics = world.voices["qrm"], world.voices["metrics"]
    pods = tuple(
        PodAllocation(uid=p.uid, namespace=p.namespace, name=p.name, pool="reclaim", cpus="0", mems=mems)
        for p, mems in ((HERE, "1"), (THERE, "0"))
    )
    for period in range(periods + silent_periods):
        if period < periods:
            fields: dict[str, Any] = {
                "status": status,
                "reclaimed_cpu_millis": 44_000,
                "reclaimed_memory_bytes": 1 << 40,
            }
            await qrm.publish(qrm.stamp(Allocation, reclaimed_numas=parts, pods=pods, **fields))
        await asyncio.sleep(0.01)
        await metrics.publish(metrics.stamp(NodeSample, **sample_fields(world.readings())))
        await asyncio.sleep(PERIOD_S - 0.01)


def offers(*millis: int) -> tuple[NumaOffer, ...]:
    return tuple(NumaOffer(numa=numa, reclaimed_cpu_millis=amount) for numa, amount in enumerate(millis))


@pytest.mark.parametrize(
    ("parts", "status", "gone"),
    [
        pytest.param(offers(43_000, 1000), "applied", [HERE.uid], id="node 1 has little left"),
        pytest.param(offers(22_000, 22_000), "applied", [], id="enough everywhere"),
        pytest.param(None, "applied", [], id="not told by NUMA node"),
        pytest.param(offers(43_000, 1000), "held", [], id="not by advice"),
    ],
)
def test_too_much_asked_of_one_numa_node_evicts_who_lies_there(
    node: MakeNode, virtual: Virtual, parts: tuple[NumaOffer, ...] | None, status: str, gone: list[str]
) -> None:
    async def main() -> None:
        world = node(plugins={SECTION: {"enabled": True}})
        await world.create_streams()
        world.run(HERE, THERE)
        async with world.life():
            await minutes(world, parts=parts, periods=3, status=status)
        assert world.evictor.kills == gone
        assert {event.plugin for event in world.events} == ({PLUGIN} if gone else set())

    virtual(main())


def test_an_offer_that_has_grown_old_is_no_offer(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = node(plugins={SECTION: {"enabled": True, "mode": "observe"}})
        await world.create_streams()
        world.run(HERE, THERE)
        async with world.life():
            await minutes(world, parts=offers(43_000, 1000), periods=3)
            before = world.state()["plugins"][PLUGIN]
            await minutes(world, parts=None, periods=0, silent_periods=17)
            after = world.state()["plugins"][PLUGIN]
        assert before["finding"]["scope"].startswith("zone1|")
        assert after["finding"] == "unknown"

    virtual(main())


@pytest.mark.parametrize(
    ("said", "mems", "numa"),
    [
        pytest.param("1", "0", 1, id="the scheduler's word counts first"),
        pytest.param(None, "1", 1, id="else where its memory lies"),
        pytest.param(None, "0-1", None, id="on several it is bound to none"),
        pytest.param(None, "", None, id="not known"),
        pytest.param("here", "1", 1, id="a word that is no number"),
        pytest.param("-1", "", None, id="no NUMA node"),
    ],
)
def test_a_pod_is_bound_where_somebody_says_or_all_its_memory_lies(
    said: str | None, mems: str, numa: int | None
) -> None:
    one = pod("one", annotations={} if said is None else {NUMA_BIND_RESULT: said})
    shown = view([idle(one)], low=False)
    assert shown.allocation is not None
    at = PodAllocation(uid=one.uid, namespace=one.namespace, name=one.name, pool="reclaim", cpus="0", mems=mems)
    shown = replace(shown, allocation=shown.allocation.model_copy(update={"pods": (at,)}))
    assert bound_numas(shown) == ({} if numa is None else {one.uid: numa})
