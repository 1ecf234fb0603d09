"""What central says in the CNRs: the agents' conditions, and its taint beside those of others."""

import asyncio
from functools import partial

import pytest
from cluster_world import ten_nodes

from services.central.core.lost_nodes.lost_node import TAINT_KEY
from shared.core.api_kind import CNRS, PODS
from shared.errors import Refused


@pytest.fixture
def play(virtual):
    return partial(ten_nodes, virtual)


def conditions(world, node):
    rows = world.api.documents[CNRS, "", node].get("status", {}).get("conditions", [])
    return {row["type"]: (row["status"], row["reason"]) for row in rows}


WELL = {"AgentNotFound": ("False", "AllAgentsFound"), "AgentReady": ("True", "AllAgentsReady"),
        "ReclaimedWithdrawn": ("False", "AgentHeard")}  # fmt: skip


def test_the_cnr_says_how_the_agent_is_and_that_its_resources_are_withdrawn(play):
    async def story(world):
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


def test_what_cannot_be_known_leaves_the_conditions_as_they_are(play):
    async def story(world):
        world.silent.update(world.nodes)
        world.app.bus.cut = True
        world.api.go_offline()
        await asyncio.sleep(300)
        assert [conditions(world, name) for name in world.nodes] == [WELL] * 10

    play(story)


def test_conditions_are_written_on_change_and_again_where_somebody_took_them_away(play):
    async def story(world):
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


def test_the_taints_of_others_in_the_cnr_stay_as_they_stand_field_by_field(play):
    async def story(world):
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


def test_a_lost_taint_that_somebody_else_wrote_in_todays_shape_goes_with_the_loss(play):
    async def story(world):
        later = {"key": TAINT_KEY, "effect": "NoSchedule", "qosLevel": "reclaimed_cores", "value": "by hand"}
        world.api.put(CNRS, {**world.api.documents[CNRS, "", "n3"], "spec": {"taints": [PRESSURE, later]}})
        await asyncio.sleep(5)
        assert world.api.documents[CNRS, "", "n3"]["spec"]["taints"] == [PRESSURE]

    play(story)


def test_a_cnr_that_takes_no_condition_keeps_no_other_node_from_its_due(play):
    async def story(world):
        apply = world.api.apply

        async def refusing(kind, document, **more):
            if document["metadata"]["name"] == "n0" and more.get("status"):
                raise Refused("n0: too many conditions", reason="Invalid")
            return await apply(kind, document, **more)

        world.api.apply = refusing
        world.kill_agent("n0")
        world.kill_agent("n3")
        await asyncio.sleep(34)
        assert (world.offered("n0"), world.offered("n3")) == ("0", "0")
        assert conditions(world, "n3")["ReclaimedWithdrawn"] == ("True", "AgentSilent")

    play(story)
