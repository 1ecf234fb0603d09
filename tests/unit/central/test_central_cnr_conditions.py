"""What central says in the CNRs: the agents' conditions, and its taint beside those of others."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from cluster_world import TenNodes, World, ten_nodes
from fixture_types import Virtual

from services.central.core.lost_nodes.lost_node import TAINT_KEY
from shared.core.api_kind import CNRS, PODS, ApiKind
from shared.errors import Refused


@pytest.fixture
def play(virtual: Virtual) -> TenNodes:
    return partial(ten_nodes, virtual)


def conditions(world: World, node: str) -> dict[str, tuple[str, str]]:
    rows = world.api.documents[CNRS, "", node].get("status", {}).get("conditions", [])
    return {row["type"]: (row["status"], row["reason"]) for row in rows}


WELL = {"AgentNotFound": ("False", "AllAgentsFound"), "AgentReady": ("True", "AllAgentsReady"),
        "ReclaimedWithdrawn": ("False", "AgentHeard")}  # fmt: skip


def test_the_cnr_says_how_the_agent_is_and_that_its_resources_are_withdrawn(play: TenNodes) -> None:
    async def story(world: World) -> None:
        assert [conditions(world, name) for name in world.nodes] == [WELL] * 10
        world.kill_agent("n3")
        await asyncio.sleep(34)
        assert conditions(world, "n3") == WELL | {
            "AgentReady": ("False", "WithAgentsNotReady"),
            "ReclaimedWithdrawn": ("True", "AgentSilent"),
        }
        order = [write for write in world.api.writes if write[2] == "n3" and write[0].endswith("-status")]
        assert [verb for verb, _, _ in order[-2:]] == ["apply-status", "patch-status"], "the mark is there first"
        world.api.drop(PODS, "agent-n3", "sublet-system")
        await asyncio.sleep(5)
        assert conditions(world, "n3")["AgentNotFound"] == ("True", "withAgentsNotFound")
        assert conditions(world, "n3")["AgentReady"] == ("Unknown", "WithAgentsUnknown")
        world.silent.clear()
        world.agent("n3", ready=True)
        await asyncio.sleep(15)
        assert [conditions(world, name) for name in world.nodes] == [WELL] * 10

    play(story)


def test_what_cannot_be_known_leaves_the_conditions_as_they_are(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.silent.update(world.nodes)
        world.app.bus.go_offline()
        world.api.go_offline()
        await asyncio.sleep(300)
        assert [conditions(world, name) for name in world.nodes] == [WELL] * 10

    play(story)


def test_conditions_are_written_on_change_and_again_where_somebody_took_them_away(play: TenNodes) -> None:
    async def story(world: World) -> None:
        before = len(world.api.writes)
        await asyncio.sleep(300)
        told = [write for write in world.api.writes[before:] if write[0] == "apply-status"]
        assert told == []
        cnr = world.api.documents[CNRS, "", "n3"]
        world.api.put(CNRS, {**cnr, "status": {}})
        await asyncio.sleep(5)
        assert conditions(world, "n3") == WELL

    play(story)


PRESSURE = {
    "key": "node.katalyst.kubewharf.io/MemoryPressure",
    "effect": "NoSchedule",
    "timeAdded": "2023-01-09T06:32:08Z",
}


def test_the_taints_of_others_in_the_cnr_stay_as_they_stand_field_by_field(play: TenNodes) -> None:
    async def story(world: World) -> None:
        document = {"metadata": {"name": "n3"}, "spec": {"taints": [PRESSURE]}}
        await world.api.apply(CNRS, document, manager="sublet-evictor")
        world.kill_agent("n3")
        await asyncio.sleep(130)
        taints = world.api.documents[CNRS, "", "n3"]["spec"]["taints"]
        assert taints == [PRESSURE, {"key": TAINT_KEY, "effect": "NoScheduleForReclaimedTasks"}]
        world.silent.clear()
        world.agent("n3", ready=True)
        await asyncio.sleep(15)
        assert world.api.documents[CNRS, "", "n3"]["spec"]["taints"] == [PRESSURE]

    play(story)


def test_a_lost_taint_that_somebody_else_wrote_in_todays_shape_goes_with_the_loss(play: TenNodes) -> None:
    async def story(world: World) -> None:
        later = {"key": TAINT_KEY, "effect": "NoSchedule", "qosLevel": "reclaimed_cores", "value": "by hand"}
        world.api.put(CNRS, {**world.api.documents[CNRS, "", "n3"], "spec": {"taints": [PRESSURE, later]}})
        await asyncio.sleep(5)
        assert world.api.documents[CNRS, "", "n3"]["spec"]["taints"] == [PRESSURE]

    play(story)


def test_a_cnr_that_takes_no_condition_keeps_no_other_node_from_its_due(play: TenNodes) -> None:
    async def story(world: World) -> None:
        apply = world.api.apply

        async def refusing(
            kind: ApiKind, document: Mapping[str, Any], *, manager: str, status: bool = False
        ) -> dict[str, Any]:
            if document["metadata"]["name"] == "n0" and status:
                raise Refused("n0: too many conditions", reason="Invalid")
            return await apply(kind, document, manager=manager, status=status)

        world.api.apply = refusing  # type: ignore[method-assign]
        world.kill_agent("n0")
        world.kill_agent("n3")
        await asyncio.sleep(34)
        assert (world.offered("n0"), world.offered("n3")) == ("0", "0")
        assert conditions(world, "n3")["ReclaimedWithdrawn"] == ("True", "AgentSilent")

    play(story)
