"""NodeSLO objects: one for each Node in Koordinator's shape, written on change alone, and never against somebody."""

import asyncio
import json
from datetime import datetime
from typing import Any

import pytest
from cluster_world import Playing, World, playing
from fixture_types import Virtual

from services.central.adapters.cnr_conditions import MANAGER
from services.central.adapters.slo_objects import EVENTS
from services.central.core.objects.node_slos import NodeSloSeen, foreign_writer, node_slo_of
from shared.core.api_kind import CONFIG_MAPS, NODE_SLOS, NODES
from shared.errors import Refused

FOLLOWED = {"kubernetes": {"slo": {"enabled": True}}}
META = {"name": "slo-controller-config", "namespace": "koordinator-system"}
FIELDS = ["cpuBurstStrategy", "resourceQOSStrategy", "resourceUsedThresholdWithBE", "systemStrategy"]


@pytest.fixture
def play(virtual: Virtual) -> Playing:
    """Run a story in virtual time."""
    return playing(virtual)


def put(world: World, **documents: Any) -> None:
    data = {key.replace("_", "-"): text if isinstance(text, str) else json.dumps(text)
            for key, text in documents.items()}  # fmt: skip
    world.api.put(CONFIG_MAPS, {"metadata": META, "data": data})


def spec(world: World, node: str) -> dict[str, Any]:
    found: dict[str, Any] = world.api.documents[NODE_SLOS, "", node]["spec"]
    return found


def threshold(world: World, node: str) -> int:
    found: int = spec(world, node)["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"]
    return found


def managed(manager: str, *, part: str = "f:spec", **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": {part: {}}, **more}


async def two_nodes(world: World) -> None:
    world.node("n1", pool="hot")
    world.node("n2")
    world.app = world.central()
    await asyncio.sleep(5)


def test_each_node_has_one_with_what_is_built_in_and_owns_it(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        for name in ("n1", "n2"):
            assert sorted(spec(world, name)) == FIELDS
            assert threshold(world, name) == 65
            (owner,) = world.api.documents[NODE_SLOS, "", name]["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"]) == ("Node", world.api.documents[NODES, "", name]["metadata"]["uid"])

    play(story, **FOLLOWED)


def test_they_follow_the_config_map_and_labels_and_are_written_on_change_alone(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        hot = {"name": "hot", "nodeSelector": {"matchLabels": {"pool": "hot"}}, "cpuSuppressThresholdPercent": 50}
        app = {"name": "nginx", "qos": "LS"}
        put(world, resource_threshold_config={"clusterStrategy": {"enable": True}, "nodeStrategies": [hot]},
            host_application_config={"applications": [app]})  # fmt: skip
        await asyncio.sleep(3)
        assert [threshold(world, name) for name in ("n1", "n2")] == [50, 65]
        assert spec(world, "n1")["hostApplications"] == [app]
        node = world.api.documents[NODES, "", "n2"]
        world.api.put(NODES, {**node, "metadata": {"name": "n2", "labels": {"pool": "hot"}}})
        await asyncio.sleep(3)
        assert threshold(world, "n2") == 50
        writes = len(world.api.writes)
        await asyncio.sleep(300)
        assert not [one for one in world.api.writes[writes:] if one[1] == NODE_SLOS.plural]

    play(story, **FOLLOWED)


def test_they_are_made_again_and_go_with_their_node(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        world.api.drop(NODE_SLOS, "n1")
        await asyncio.sleep(3)
        assert threshold(world, "n1") == 65
        world.api.drop(NODES, "n1")
        await asyncio.sleep(3)
        assert (NODE_SLOS, "", "n1") not in world.api.documents
        assert (NODE_SLOS, "", "n2") in world.api.documents

    play(story, **FOLLOWED)


def test_what_somebody_else_writes_is_left_alone_and_said(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        theirs = {"name": "n1", "managedFields": [managed("koord-manager")]}
        world.api.put(NODE_SLOS, {"metadata": theirs, "spec": {"systemStrategy": {"watermarkScaleFactor": 10}}})
        world.api.put(NODE_SLOS, {"metadata": {**theirs, "name": "gone"}, "spec": {}})
        await two_nodes(world)
        put(world, system_config={"clusterStrategy": {"watermarkScaleFactor": 20}})
        await asyncio.sleep(60)
        assert spec(world, "n1") == {"systemStrategy": {"watermarkScaleFactor": 10}}
        assert (NODE_SLOS, "", "gone") in world.api.documents
        assert spec(world, "n2")["systemStrategy"]["watermarkScaleFactor"] == 20
        state = world.app.state()["cluster"]["slo"]["node_slos"]
        assert state["left_alone"] == {"n1": "koord-manager", "gone": "koord-manager"}
        assert world.app.health().ok

    play(story, **FOLLOWED)


@pytest.mark.parametrize(
    ("fields", "who"),
    [
        ((), ""),
        ((managed(MANAGER),), ""),
        ((managed(MANAGER), managed("koordlet", part="f:status", subresource="status")), ""),
        ((managed("x", part="f:metadata"),), ""),
        ((managed(MANAGER), managed("kubectl-edit")), "kubectl-edit"),
    ],
)
def test_somebody_else_is_who_writes_the_spec(fields: tuple[dict[str, Any], ...], who: str) -> None:
    seen = node_slo_of({"metadata": {"name": "n1", "uid": "u", "managedFields": list(fields)}, "spec": None})
    assert foreign_writer(seen, MANAGER) == who
    assert seen == NodeSloSeen("n1", "u", {}, frozenset(), seen.writers)


def test_a_server_that_drops_fields_is_not_written_to_for_ever(play: Playing) -> None:
    async def story(world: World) -> None:
        applied, written = world.api.apply, list[str]()

        async def pruning(*words: Any, **more: Any) -> dict[str, Any]:
            document = {**words[1]}
            if words[0] == NODE_SLOS:
                written.append(document["metadata"]["name"])
                document["spec"] = {name: value for name, value in document["spec"].items() if name != "systemStrategy"}
            return await applied(words[0], document, **more)

        world.api.apply = pruning  # type: ignore[method-assign]
        await two_nodes(world)
        put(world, resource_threshold_config={"clusterStrategy": {"cpuSuppressThresholdPercent": 40}})
        await asyncio.sleep(10)
        assert threshold(world, "n1") == 40
        assert sorted(written) == ["n1", "n1", "n2", "n2"]
        await asyncio.sleep(100)
        assert len(written) == 4

    play(story, **FOLLOWED)


def test_a_key_that_cannot_be_read_leaves_its_field_and_says_so_once_at_the_config_map(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        put(world, system_config={"clusterStrategy": {"watermarkScaleFactor": 20}})
        await asyncio.sleep(3)
        world.app.task.cancel()
        put(world, system_config="{", cpu_burst_config={"clusterStrategy": {"policy": "auto"}})
        world.app = world.central()
        await asyncio.sleep(90)
        assert spec(world, "n1")["systemStrategy"]["watermarkScaleFactor"] == 20
        assert spec(world, "n1")["cpuBurstStrategy"]["policy"] == "auto"
        (event,) = world.api.of(EVENTS)
        assert event["metadata"]["namespace"] == META["namespace"]
        assert (event["type"], event["regarding"]["name"]) == ("Warning", META["name"])
        assert "system-config" in event["note"]
        put(world, system_config=" ".join("{") + "x" * 5000)
        await asyncio.sleep(3)
        assert len(world.api.of(EVENTS)) == 2
        assert all(len(one["note"]) <= 1024 for one in world.api.of(EVENTS))

    play(story, **FOLLOWED)


def test_a_fault_that_lasts_is_said_again_before_the_server_forgets_it_and_a_new_leader_says_nothing_twice(
    play: Playing,
) -> None:
    hour_s, seen = 3600, list[float]()

    async def story(world: World) -> None:
        await two_nodes(world)
        put(world, system_config="{")
        for _ in range(12):
            await asyncio.sleep(300)
            told = [datetime.fromisoformat(one["eventTime"]).timestamp() for one in world.api.of(EVENTS)]
            assert world.clock.wall().timestamp() - max(told) < hour_s / 2
        seen.append(len(world.api.of(EVENTS)))
        world.app.task.cancel()
        world.app = world.central()
        await asyncio.sleep(60)
        seen.append(len(world.api.of(EVENTS)))
        put(world, system_config="")
        await asyncio.sleep(2 * hour_s)
        seen.append(len(world.api.of(EVENTS)))

    play(story, **FOLLOWED)
    assert 3 <= seen[0] <= 4
    assert seen[1] - seen[0] <= 1
    assert seen[2] == seen[1]


def test_a_note_in_any_script_is_as_short_as_the_server_wants_it(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        entries = [{"name": "\u6c34" * 70, "nodeSelector": {}, "n": n} for n in range(30)]
        strategy = {"resourceAmplificationRatio": {"\u6c34" * 70 + str(n): 0 for n in range(30)}}
        put(world, resource_amplification_config=strategy, system_config={"nodeStrategies": entries})
        await asyncio.sleep(3)
        (event,) = world.api.of(EVENTS)
        assert 1000 < len(event["note"].encode()) <= 1024
        assert event["note"].endswith("…")

    play(story, **FOLLOWED)


def test_where_events_are_refused_the_objects_are_written_and_it_is_said_later(play: Playing) -> None:
    async def story(world: World) -> None:
        created, refusing = world.api.create, True

        async def refused(*words: Any, **more: Any) -> Any:
            if words[0] == EVENTS and refusing:
                raise Refused("events is forbidden", reason="Forbidden")
            return await created(*words, **more)

        world.api.create = refused  # type: ignore[method-assign]
        await two_nodes(world)
        put(world, cpu_burst_config="{", system_config={"clusterStrategy": {"watermarkScaleFactor": 20}})
        await asyncio.sleep(3)
        assert spec(world, "n1")["systemStrategy"]["watermarkScaleFactor"] == 20
        state = world.app.state()["cluster"]["slo"]["node_slos"]
        assert (state["failure"], state["event_failure"]) == ("", "events is forbidden")
        refusing = False
        await asyncio.sleep(400)
        assert len(world.api.of(EVENTS)) == 1
        assert world.app.state()["cluster"]["slo"]["node_slos"]["event_failure"] == ""

    play(story, **FOLLOWED)


def test_without_leading_nothing_is_written(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        one, two = world.central(), world.central()
        await asyncio.sleep(30)
        assert [app.cluster.leading for app in (one, two)] == [True, False]
        assert [row for row in world.api.writes if row[1] == NODE_SLOS.plural] == [("create", NODE_SLOS.plural, "n1"), (
            "apply", NODE_SLOS.plural, "n1")]  # fmt: skip

    play(story, **FOLLOWED)


def test_a_node_made_anew_under_its_name_owns_its_own(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        node = world.api.documents[NODES, "", "n1"]
        world.api.drop(NODES, "n1")
        world.api.put(NODES, {**node, "metadata": {"name": "n1", "uid": "another"}})
        await asyncio.sleep(3)
        (owner,) = world.api.documents[NODE_SLOS, "", "n1"]["metadata"]["ownerReferences"]
        assert owner["uid"] == "another"

    play(story, **FOLLOWED)


def test_while_the_config_map_cannot_be_seen_nothing_is_written_and_central_says_so(play: Playing) -> None:
    async def story(world: World) -> None:
        follow = world.api.mirror_one

        def unseen(*words: Any, **more: Any) -> Any:
            mirror: Any = follow(*words, **more)
            mirror.run = asyncio.Event().wait
            return mirror

        world.api.mirror_one = unseen  # type: ignore[method-assign]
        put(world, system_config={"clusterStrategy": {"watermarkScaleFactor": 20}})
        await two_nodes(world)
        assert not world.api.of(NODE_SLOS)
        assert "ConfigMap koordinator-system/slo-controller-config" in world.app.health().why

    play(story, **FOLLOWED)
