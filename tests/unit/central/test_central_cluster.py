"""Central in a cluster: who leads, companions of Nodes, and dynamic configuration from the objects to the nodes."""

import asyncio
from pathlib import Path

import pytest
from cluster_world import CPU, OLD_CPU, Playing, World, playing
from fixture_types import Virtual

from services.central.main import PLAN
from shared.adapters.clock import LoopClock
from shared.app import Context
from shared.core.api_kind import ADMIN_QOS_CONFIGS, CNCS, CNRS, EVICTION_CONFIGS, KCCS, NODES
from shared.fakes.memory_bus import MemoryBus
from shared.settings import CommonSettings
from shared.wire import Wire


@pytest.fixture
def play(virtual: Virtual) -> Playing:
    """Run a story in virtual time."""
    return playing(virtual)


def test_every_node_gets_its_companions_with_its_labels_and_as_its_owner(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1", "n2", pool="a")
        world.central()
        await asyncio.sleep(1)
        for kind in (CNRS, CNCS):
            for name in ("n1", "n2"):
                document = world.api.documents[kind, "", name]
                assert document["metadata"]["labels"] == {"kubernetes.io/hostname": name, "pool": "a"}
                owner = document["metadata"]["ownerReferences"][0]
                node = world.api.documents[NODES, "", name]["metadata"]
                assert (owner["kind"], owner["uid"], owner["controller"]) == ("Node", node["uid"], True)
        await asyncio.sleep(60)
        asked = world.api.asked
        await asyncio.sleep(300)
        assert world.api.asked - asked <= 151, "more than the lease was written"

    play(story)


def test_companions_are_made_again_follow_labels_and_go_with_their_node(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1", pool="a")
        world.central()
        await asyncio.sleep(1)
        world.api.drop(CNRS, "n1")
        await asyncio.sleep(1)
        assert (CNRS, "", "n1") in world.api.documents
        node = world.api.documents[NODES, "", "n1"]
        world.api.put(NODES, {**node, "metadata": {"name": "n1", "labels": {"pool": "b"}}})
        await asyncio.sleep(1)
        assert world.api.documents[CNCS, "", "n1"]["metadata"]["labels"] == {"pool": "b"}
        world.api.drop(NODES, "n1")
        await asyncio.sleep(61)
        assert (CNRS, "", "n1") not in world.api.documents
        assert (CNCS, "", "n1") not in world.api.documents

    play(story)


def test_a_node_made_anew_under_its_name_owns_its_companions(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        world.central()
        await asyncio.sleep(1)
        node = world.api.documents[NODES, "", "n1"]
        world.api.drop(NODES, "n1")
        world.api.put(NODES, {**node, "metadata": {"name": "n1", "uid": "another"}})
        await asyncio.sleep(1)
        for kind in (CNRS, CNCS):
            meta = world.api.documents[kind, "", "n1"]["metadata"]
            assert [owner["uid"] for owner in meta["ownerReferences"]] == ["another"]

    play(story)


def test_the_tutorials_change_of_the_threshold_reaches_every_node_and_each_one_says_so(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1", "n2", "n3")
        world.central()
        await asyncio.sleep(5)
        world.kcc()
        world.threshold(5)
        await asyncio.sleep(3)
        assert [await world.settings_of(n) for n in world.nodes] == [5, 5, 5]
        world.threshold(10)
        await asyncio.sleep(1)
        assert [await world.settings_of(n) for n in world.nodes] == [10, 10, 10]
        await asyncio.sleep(3)
        status = world.ec()
        assert world.valid() == ("True", "Normal", "")
        assert (status["targetNodes"], status["canaryNodes"], status["updatedTargetNodes"]) == (3, 3, 3)
        assert status["updatedNodes"] == 3
        (entry,) = world.cnc("n1")
        assert (entry["configName"], entry["hash"]) == ("default", status["currentHash"])
        assert entry["configType"]["resource"] == "evictionconfigurations"
        await asyncio.sleep(60)
        asked = world.api.asked
        await asyncio.sleep(200)
        assert world.api.asked - asked <= 101, "more than the lease was written"

    play(story)


def test_nodes_count_as_updated_only_when_they_say_that_they_work_with_it(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1", "n2")
        world.refusing.add("n2")
        world.central()
        world.kcc()
        world.threshold(7)
        await asyncio.sleep(10)
        assert (world.ec()["targetNodes"], world.ec()["updatedTargetNodes"], world.ec()["updatedNodes"]) == (2, 1, 1)

    play(story)


def test_a_bad_object_is_refused_in_words_the_last_good_one_stays_and_others_go_on(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1", pool="a")
        world.node("n2", pool="b")
        world.central()
        world.kcc(nodeLabelSelectorAllowedKeyList=[{"priority": 0, "keyList": ["pool"]}])
        world.threshold(5, "one", nodeLabelSelector="pool=a")
        world.threshold(6, "two", nodeLabelSelector="pool=b")
        await asyncio.sleep(3)
        good = world.ec("one")["currentHash"]
        world.threshold(-1, "one", nodeLabelSelector="pool=a")
        world.threshold(8, "two", nodeLabelSelector="pool=b")
        await asyncio.sleep(3)
        status, reason, message = world.valid("one")
        assert (status, reason) == ("False", "ValidateFailed")
        assert f"evictionThreshold[{OLD_CPU}] = -1: want a number above 0 and up to 1000" in message
        assert world.ec("one")["currentHash"] == good
        assert [await world.settings_of(n) for n in world.nodes] == [5, 8]
        kcc = world.api.documents[KCCS, "default", "eviction-configuration"]["status"]
        assert kcc["invalidTargetConfigList"] == ["default/one"]
        world.threshold(9, "one", nodeLabelSelector="pool=a")
        await asyncio.sleep(3)
        assert world.valid("one")[0] == "True"
        assert [await world.settings_of(n) for n in world.nodes] == [9, 8]

    play(story)


def test_a_field_without_counterpart_is_named_in_the_status(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        world.central()
        world.kcc()
        config = {"evictionPluginsConfig": {"memoryEvictionPluginConfig": {"numaEvictionRankingMetrics": ["qos.pod"]}}}
        world.api.put(EVICTION_CONFIGS, {"metadata": {"name": "default"}, "spec": {"config": config}})
        await asyncio.sleep(3)
        status, _, message = world.valid()
        assert status == "True"
        assert "memoryEvictionPluginConfig.numaEvictionRankingMetrics" in message

    play(story)


def test_what_no_valid_kcc_declares_is_not_rolled_out_and_says_so(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        world.central()
        world.threshold(5)
        await asyncio.sleep(2)
        assert world.valid()[:2] == ("False", "MatchMoreOrLessThanOneKCC")
        world.kcc()
        await asyncio.sleep(2)
        assert await world.settings_of("n1") == 5
        world.kcc(name="another")
        world.threshold(6)
        await asyncio.sleep(2)
        assert await world.settings_of("n1") == 5
        (condition,) = world.api.documents[KCCS, "default", "another"]["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "TargetTypeOverlap")

    play(story)


def test_a_canary_gets_it_first_and_the_others_keep_theirs_also_through_a_new_leader(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1", "n2")
        first = world.central()
        world.kcc()
        world.threshold(5)
        await asyncio.sleep(3)
        world.threshold(9, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"canary": 1}})
        await asyncio.sleep(3)
        assert [await world.settings_of(n) for n in world.nodes] == [9, 5]
        first.task.cancel()
        await asyncio.sleep(0)
        await first.close()
        world.central()
        await asyncio.sleep(40)
        assert [await world.settings_of(n) for n in world.nodes] == [9, 5]
        assert (world.ec()["updatedTargetNodes"], world.ec()["targetNodes"]) == (1, 2)

    play(story)


def test_a_deleted_object_takes_its_settings_with_it(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        world.central()
        world.kcc()
        world.threshold(5)
        await asyncio.sleep(3)
        world.api.drop(EVICTION_CONFIGS, "default")
        await asyncio.sleep(2)
        assert await world.settings_of("n1") is None
        assert world.cnc("n1") == []

    play(story)


def test_a_temporary_object_ends(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        world.central()
        world.kcc()
        world.threshold(5)
        world.threshold(8, "soon", ephemeralSelector={"nodeNames": ["n1"], "lastDuration": "2m"})
        await asyncio.sleep(3)
        assert await world.settings_of("n1") == 8
        await asyncio.sleep(160)
        assert (EVICTION_CONFIGS, "default", "soon") not in world.api.documents
        assert await world.settings_of("n1") == 5

    play(story)


def test_a_bucket_that_was_lost_is_filled_again(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        world.central()
        world.kcc()
        world.threshold(5)
        await asyncio.sleep(3)
        world.bus.broker.buckets.clear()
        await asyncio.sleep(70)
        assert await world.settings_of("n1") == 5

    play(story)


def test_while_the_api_server_is_away_the_nodes_keep_what_they_have(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        app = world.central()
        world.kcc()
        world.threshold(5)
        await asyncio.sleep(3)
        world.api.go_offline()
        await asyncio.sleep(120)
        assert await world.settings_of("n1") == 5
        assert not app.cluster.leading
        assert "API server" in app.health().why
        world.threshold(7)
        world.api.go_online()
        await asyncio.sleep(20)
        assert await world.settings_of("n1") == 7
        assert world.offered("n1") == "10k"

    play(story)


def test_of_two_kinds_that_say_the_same_todays_goes_before_the_old_one(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        world.central()
        world.kcc()
        world.kcc("adminqosconfigurations", "admin")
        world.threshold(5)
        await asyncio.sleep(2)
        config = {"evictionConfig": {"reclaimedResourcesEvictionConfig": {"evictionThreshold": {CPU: 12}}}}
        world.api.put(ADMIN_QOS_CONFIGS, {"metadata": {"name": "default"}, "spec": {"config": config}})
        await asyncio.sleep(2)
        assert await world.settings_of("n1") == 12
        assert [entry["configType"]["resource"] for entry in world.cnc("n1")] == [
            "adminqosconfigurations",
            "evictionconfigurations",
        ]

    play(story)


def test_on_substrate_kubernetes_central_is_built_with_a_cluster_beside_it(tmp_path: Path, virtual: Virtual) -> None:
    async def run() -> None:
        clock = LoopClock()
        wire = Wire(MemoryBus(), clock, node="hub", service="central")
        common = CommonSettings(substrate="kubernetes", state_dir=tmp_path, kubeconfig=tmp_path / "none")
        app = PLAN.build(Context(wire, clock, common, {}))
        task = asyncio.create_task(app.run())
        await asyncio.sleep(3)
        assert "no way to the API server" in app.state()["cluster"]["leader"]["failure"]
        assert "set `kubeconfig`" in app.health().why
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await app.close()

    virtual(run())
