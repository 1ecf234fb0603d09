"""Tide pools in a cluster in memory and in virtual time: what is marked, emptied, given back and held."""

import asyncio
from typing import Any

import pytest
from fixture_types import Virtual
from tide_world import BATCH, SERVICE, Play, TideWorld, made, passes, tide_playing

from services.central.core.tide.change import CHANGE, LAST
from shared.core.api_kind import NODES
from shared.ports import ActionResult


@pytest.fixture
def play(virtual: Virtual) -> Play:
    """Run a story in virtual time."""
    return tide_playing(virtual)


def test_new_nodes_get_their_roles_and_foreign_marks_stay(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.machines("other", labels={})
        world.service("x", "n1", cpu="3")
        world.service("y", "n4", cpu="3")
        await made(world, "n1", "n2", "n3", "n4", online="30%", offline="30%")
        roles = {"n1": "online_reserve", "n2": "online_reserve", "n3": "offline_reserve", "n4": "tide_online"}
        assert world.roles() == {**roles, "other": None}
        assert world.taints("n1") == [("offline-not-used", "NoExecute")]
        assert world.taints("n3") == [("online-not-used", "NoExecute")]
        node = world.node_document("n3")
        assert node["metadata"]["labels"]["zone"] == "z"
        assert {"key": "gpu", "effect": "PreferNoSchedule", "timeAdded": "2026-01-01T00:00:00Z"} in node["spec"][
            "taints"
        ]
        status = world.status()
        assert status["reserveNodes"] == {"onlineNodes": ["n1", "n2"], "offlineNodes": ["n3"]}
        assert (status["tideNodes"]["nodes"], status["onlineCount"], status["offlineCount"]) == (["n4"], 3, 1)
        assert world.condition("Valid")[:2] == ("True", "Read")
        assert world.condition("Settled")[:2] == ("True", "Settled")
        writes = len(world.api.writes)
        await passes(3)
        assert [one for one in world.api.writes[writes:] if one[1] in ("nodes", "tidenodepools")] == []

    assert play(story).ended == []


def test_a_node_goes_offline_only_when_its_pods_have_left_and_one_after_the_other(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        for name in ("n1", "n2", "n3"):
            world.service(f"s-{name}", name)
        world.evictor.lives_on_s = 30
        # The reserve and one tide node have room for all; n2 and n3 are equally used, n2 comes first.
        await made(world, "n1", "n2", "n3", online=1)
        assert world.role("n2") == "tide_online"
        assert ("online-not-used", "NoSchedule") in world.taints("n2")
        assert world.evictor.killed == ["s-n2"]
        assert world.condition("Settled")[1] == "Changing"
        assert "s-n2" in world.condition("Settled")[2]
        world.service("s-n2-again", "n1")
        await passes(4)
        assert world.role("n2") == "tide_offline"
        assert world.taints("n2") == [("online-not-used", "NoExecute")]
        assert CHANGE not in world.node_document("n2")["metadata"]["annotations"]
        assert world.role("n3") == "tide_online"

    assert play(story).ended == []


def test_a_waiting_pod_gets_the_least_used_node_and_batch_pods_leave_by_eviction(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        await made(world, "n1", "n2", "n3", offline=3)
        assert set(world.roles().values()) == {"offline_reserve"}
        world.batch("heavy", "n1", cpu="3")
        world.batch("light", "n2", cpu="1")
        world.pool(offline=1)
        await passes(1)
        # n3 is what stays of the reserve.
        assert (world.role("n1"), world.role("n2"), world.role("n3")) == (
            "tide_offline",
            "tide_offline",
            "offline_reserve",
        )
        await asyncio.sleep(700)
        world.service("waits", None, cpu="4")
        await passes(2)
        assert world.role("n2") == "tide_online"
        assert world.evictor.killed == ["light"]
        assert world.taints("n2") == [("offline-not-used", "NoExecute")]
        world.bind("waits", "n2")
        await passes(2)
        assert world.role("n1") == "tide_offline"

    assert play(story).ended == []


def test_while_a_service_waits_nothing_goes_offline_and_what_was_on_its_way_comes_back(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        for name in ("n1", "n2"):
            world.service(f"s-{name}", name)
        world.evictor.lives_on_s = 300
        await made(world, "n1", "n2")
        assert world.taints("n1")[-1] == ("online-not-used", "NoSchedule")
        world.service("waits", None, cpu="3500m")
        await passes(1)
        assert world.taints("n1") == [("offline-not-used", "NoExecute")]
        assert "waits" in world.node_document("n1")["metadata"]["annotations"][LAST]
        await passes(3)
        assert world.roles() == {"n1": "tide_online", "n2": "tide_online"}
        assert world.status()["waitingPods"] == ["default/waits"]

    assert play(story).ended == []


def test_a_budget_that_holds_a_services_pod_keeps_the_node_and_is_said(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.evictor.answers.extend([ActionResult("wait", "budget")] * 500)
        world.evictor.rehearsals.extend([ActionResult("wait", "budget")] * 500)
        for name in ("n1", "n2"):
            world.service(f"s-{name}", name)
        await made(world, "n1", "n2")
        await passes(1)
        assert world.condition("Settled")[1] == "Changing"
        await asyncio.sleep(610)
        assert world.roles() == {"n1": "tide_online", "n2": "tide_online"}
        assert "did not leave within 600 s" in world.node_document("n1")["metadata"]["annotations"][LAST]
        # Held: it is not tried again at once.
        assert world.taints("n1") == [("offline-not-used", "NoExecute")]

    assert play(story).ended == []


def test_a_node_is_given_back_in_time_whatever_the_budgets_of_batch_work(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.service("busy", "n1", cpu="4")
        await made(world, "n1", "n2", online=1)
        world.evictor.answers.extend([ActionResult("wait", "budget")] * 500)
        world.evictor.rehearsals.extend([ActionResult("wait", "budget")] * 500)
        world.api.put(NODES, {**world.node_document("n2"), "metadata": offline(world, "n2")})
        await passes(2)
        assert world.role("n2") == "tide_offline"
        world.batch("stubborn", "n2")
        world.service("waits", None)
        await passes(2)
        assert world.role("n2") == "tide_offline"
        await asyncio.sleep(120)
        assert world.role("n2") == "tide_online"
        assert "stubborn" in world.node_document("n2")["metadata"]["annotations"][LAST]

    assert play(story).ended == ["stubborn"]


def offline(world: TideWorld, name: str) -> dict[str, Any]:
    """The metadata of a tide node that somebody has given to batch work by hand."""
    meta = world.node_document(name)["metadata"]
    labels = {**meta["labels"], "tide.katalyst.kubewharf.io/node-type": "offline"}
    return {"name": name, "labels": labels}


def test_by_the_hour_nodes_come_back_before_anybody_waits(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        hour = world.clock.wall().hour
        bounds = [
            {"cronTab": f"0 {(hour - 1) % 24} * * *", "minOnline": "50%"},
            {"cronTab": f"0 {(hour + 1) % 24} * * *", "minOnline": "100%"},
        ]
        await made(world, "n1", "n2", "n3", "n4", schedule={"bounds": bounds})
        await passes(8)
        assert sorted(filter(None, world.roles().values())) == ["tide_offline"] * 2 + ["tide_online"] * 2
        await asyncio.sleep(3700)
        assert set(world.roles().values()) == {"tide_online"}

    assert play(story).ended == []


def test_a_services_pod_without_toleration_keeps_its_node_out_of_the_pool_and_is_named(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.service("forgetful", "n1", tolerations=[])
        world.service("fine", "n2")
        await made(world, "n1", "n2", online=2)
        assert world.roles() == {"n1": None, "n2": "online_reserve"}
        assert world.taints("n1") == []
        assert world.condition("Settled")[1] == "Blocked"
        assert "default/forgetful does not tolerate" in world.condition("Settled")[2]
        assert world.evictor.killed == []

    assert play(story).ended == []


def test_batch_pods_on_new_nodes_leave_by_eviction_one_node_after_the_other(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.evictor.lives_on_s = 40
        for name in ("n1", "n2"):
            world.batch(f"b-{name}", name)
        await made(world, "n1", "n2", online=2)
        assert world.evictor.killed == ["b-n1"]
        assert world.roles() == {"n1": None, "n2": None}
        await passes(8)
        assert world.roles() == {"n1": "online_reserve", "n2": "online_reserve"}
        assert world.evictor.killed == ["b-n1", "b-n2"]

    assert play(story).ended == []


def test_daemons_and_pods_of_the_node_itself_are_not_evicted(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        owner = {"kind": "DaemonSet", "name": "d", "controller": True}
        world.work("daemon", "n1", "1", labels={}, tolerations=[*SERVICE, *BATCH], ownerReferences=[owner])
        await made(world, "n1", "n2")
        await passes(3)
        assert world.role("n1") == "tide_offline" or world.role("n2") == "tide_offline"
        assert world.evictor.killed == []

    assert play(story).ended == []


def test_a_taint_that_somebody_took_away_comes_back_behind_an_empty_node(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        await made(world, "n1", "n2", online=2)
        document = world.node_document("n1")
        world.api.put(NODES, {**document, "metadata": {"name": "n1"}, "spec": {"taints": []}})
        world.batch("intruder", "n1")
        await passes(2)
        assert world.evictor.killed == ["intruder"]
        assert world.taints("n1") == [("offline-not-used", "NoExecute")]

    assert play(story).ended == []


def test_a_new_node_that_could_not_be_emptied_is_given_up_and_left_alone_for_a_while(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.evictor.rehearsals.extend([ActionResult("wait", "budget")] * 500)
        world.work("plain", "n1", "1", labels={}, tolerations=[])
        await made(world, "n1", offline=1)
        assert world.taints("n1") == [("online-not-used", "NoSchedule")]
        await asyncio.sleep(600)
        assert (world.role("n1"), world.taints("n1")) == (None, [])
        await passes(10)
        assert world.taints("n1") == []
        assert "given up before" in world.condition("Settled")[2]
        await asyncio.sleep(600)
        assert world.taints("n1") == [("online-not-used", "NoSchedule")]

    assert play(story).ended == []
