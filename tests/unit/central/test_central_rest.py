"""Central at rest: what happens on every node all the time costs no pass over all nodes, and nothing is overlooked."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from cluster_world import TenNodes, World, ten_nodes
from fixture_types import Virtual
from hypothesis import given
from hypothesis import strategies as st

from services.central.adapters.cluster_mirrors import mirror_cluster
from services.central.core.heartbeats.readiness import READY, Assessment, BusProbe, Heard, Heartbeat, assess
from services.central.core.lost_nodes.guards import CLUSTER, Census, CountedNode, Guards, NodePlace, Places, weigh
from services.central.core.lost_nodes.rules import Rules
from services.central.settings import KubernetesSettings
from shared.adapters.clock import LoopClock
from shared.core.api_kind import CNRS, ApiKind
from shared.errors import Refused
from shared.fakes.memory_objects import MemoryObjects

RULES = Rules()


@pytest.fixture
def play(virtual: Virtual) -> TenNodes:
    return partial(ten_nodes, virtual)


def test_what_a_reporter_writes_into_its_cnr_wakes_no_pass(virtual: Virtual) -> None:
    async def story() -> tuple[int, int]:
        api, woken = MemoryObjects(LoopClock()), list[str]()
        mirrors = mirror_cluster(api, lambda: woken.append("woken"), KubernetesSettings())
        tasks = [asyncio.create_task(mirror.run()) for mirror in mirrors.every]
        await asyncio.sleep(0)
        api.put(CNRS, {"metadata": {"name": "n1"}, "status": {"resourceAllocatable": {"cpu": "1"}}})
        woken.clear()
        for cpu in range(100):
            api.put(CNRS, {"metadata": {"name": "n1"}, "status": {"resourceAllocatable": {"cpu": str(cpu)}}})
        by_reporter = len(woken)
        api.put(CNRS, {"metadata": {"name": "n1", "labels": {"pool": "other"}}, "status": {"resourceAllocatable": {}}})
        for task in tasks:
            task.cancel()
        return by_reporter, len(woken)

    assert virtual(story()) == (0, 1)


def test_a_node_that_is_first_heard_of_on_the_bus_is_looked_at_although_no_object_changed(play: TenNodes) -> None:
    async def story(world: World) -> None:
        assert len(world.app.state()["cluster"]["lost_nodes"]["nodes"]) == 0
        world.kill_agent("n3")
        await asyncio.sleep(40)
        assert list(world.app.state()["cluster"]["lost_nodes"]["nodes"]) == ["n3"]
        world.node("n10")
        await asyncio.sleep(20)
        assert world.app.state()["nodes"]["ready"] == 10

    play(story)


def test_a_condition_that_is_refused_is_tried_again_and_its_node_named(play: TenNodes) -> None:
    async def story(world: World) -> None:
        apply, refusing = world.api.apply, True

        async def apply_or_refuse(
            kind: ApiKind, document: Mapping[str, Any], *, manager: str, status: bool = False
        ) -> dict[str, Any]:
            if refusing and status and document["metadata"]["name"] == "n0":
                raise Refused("n0: a policy of yours", reason="Invalid")
            return await apply(kind, document, manager=manager, status=status)

        world.api.apply = apply_or_refuse  # type: ignore[method-assign]
        world.kill_agent("n0")
        await asyncio.sleep(60)
        assert "n0" in world.app.state()["cluster"]["nodes_not_written"]
        refusing = False
        await asyncio.sleep(70)
        rows = world.api.documents[CNRS, "", "n0"]["status"]["conditions"]
        assert {row["type"]: row["status"] for row in rows}["ReclaimedWithdrawn"] == "True"
        assert "n0" not in world.app.state()["cluster"]["nodes_not_written"]

    play(story)


NODES = st.lists(
    st.tuples(st.booleans(), st.sampled_from("abc"), st.one_of(st.just(0.0), st.floats(0, 200))), max_size=60
)


@given(NODES, st.floats(100, 1000))
def test_counting_those_that_are_not_well_finds_what_counting_all_would(
    rows: list[tuple[bool, str, float]], now_s: float
) -> None:
    nodes = [CountedNode(f"n{i}", bad, silent_s, NodePlace(pool, None)) for i, (bad, pool, silent_s) in enumerate(rows)]
    found = weigh(Census.of(nodes), Guards(), now_s, RULES)
    for pool in "abc":
        members = [node for node in nodes if node.place.pool == pool]
        bad = sum(node.bad for node in members)
        allowed = 0 if members and bad == len(members) else max(1, int(0.2 * len(members) + 1e-9))
        assert (f"pool/{pool}" in found.objections) == (bad > allowed)
    newly = sum(30 < node.silent_s <= 90 for node in nodes if node.silent_s)
    sudden = newly > max(3, int(0.05 * len(nodes) + 1e-9))
    assert any("fell silent" in why for why in found.objections.get(CLUSTER, ())) == sudden


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=40))
def test_the_others_are_all_that_are_not_ready_and_are_counted_as_such(rows: list[tuple[float, bool]]) -> None:
    now_s = 1000.0
    ledger = {f"n{i:02}": Heartbeat(now_s - age_s, ready, ()) for i, (age_s, ready) in enumerate(rows)}
    found = assess(Heard(ledger, BusProbe(now_s, 0.0), Places()), Assessment(), now_s, RULES)
    assert found.others == {name: one for name, one in found.nodes.items() if one.state != "ready"}
    assert list(found.others) == sorted(found.others)
    assert sum(found.counts().values()) == len(ledger)
    assert all(one is READY for one in found.nodes.values() if one.state == "ready")
