"""Service profiles: descriptors are made and removed, say how a service does, and stand on its pods."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from cluster_world import Playing, World, playing
from fixture_types import Virtual
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.recommendation.objects.workloads import DEPLOYMENTS
from services.central.core.service_profiles.descriptor import (
    DESCRIPTORS,
    ENABLE,
    EXTENDED_SENTINEL,
    NAME,
    SENTINEL,
    DescriptorSeen,
    descriptor_of,
)
from services.central.core.service_profiles.standing import PodStanding, standing
from shared.contracts.cluster.figures import FiguredContainers, FiguredPods, PodFigures
from shared.core.api_kind import PODS
from shared.errors import Refused
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Wire

ON = {"kubernetes": {"service_profiles": {"enabled": True}}}
NOW_S = 1_800_000_000.0


@pytest.fixture
def play(virtual: Virtual) -> Playing:
    """Run a story in virtual time."""
    return playing(virtual)


def deployment(world: World, name: str = "web", *, enabled: bool = True) -> None:
    annotations = {ENABLE: "true"} if enabled else {}
    there = world.api.documents.get((DEPLOYMENTS, "shop", name), {"metadata": {}})
    meta = {**there["metadata"], "name": name, "namespace": "shop", "annotations": annotations}
    world.api.put(DEPLOYMENTS, {"metadata": meta, "spec": {"template": {"spec": {"containers": []}}}})


async def pods(world: World, *names: str, workload: str = "web", node: str = "n1") -> None:
    """One after the other, a second apart."""
    for name in names:
        meta = {"name": name, "namespace": "shop", "labels": {"pod-template-hash": "5d"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": f"{workload}-5d"}]}  # fmt: skip
        world.api.put(PODS, {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": "Running"}})
        await asyncio.sleep(1)


def edit(world: World, **spec: Any) -> None:
    there = world.api.documents[DESCRIPTORS, "shop", "web"]
    world.api.put(DESCRIPTORS, {**there, "spec": there["spec"] | spec})


def descriptor(world: World, name: str = "web") -> dict[str, Any]:
    found: dict[str, Any] = world.api.documents[DESCRIPTORS, "shop", name]
    return found


def named(world: World, pod: str) -> str | None:
    found: str | None = world.api.documents[PODS, "shop", pod]["metadata"].get("annotations", {}).get(NAME)
    return found


async def tell(world: World, node: str, cores: Mapping[str, float]) -> None:
    """A node tells of pods what they use; each has a container `main` beside 100 bytes of memory."""
    uids = tuple(world.api.documents[PODS, "shop", name]["metadata"]["uid"] for name in cores)
    if node not in world.wires:
        world.wires[node] = Wire(MemoryBus(world.bus.broker), world.clock, node=node, service="reporter")
    rows = len(uids)
    pods_told = FiguredPods(uids=uids, namespaces=("shop",) * rows, names=tuple(cores),
                            series={"pod_cpu_usage_ratio": tuple(cores.values())})  # fmt: skip
    used = {"container_cpu_usage": tuple(cores.values()), "container_memory_usage": (100,) * rows}
    containers = FiguredContainers(pods=tuple(range(rows)), names=("main",) * rows, series=used)
    wire = world.wires[node]
    await wire.publish(wire.stamp(PodFigures, measured_at=world.clock.wall(), period_s=15.0, pods=pods_told,
                                  containers=containers))  # fmt: skip


async def begin(world: World) -> None:
    world.app = world.central()
    await asyncio.sleep(5)


def test_a_deployment_that_asks_for_one_has_one_and_its_pods_carry_its_name(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world)
        deployment(world, "other", enabled=False)
        await pods(world, "a", "b")
        await pods(world, "x", workload="other")
        await begin(world)
        (owner,) = descriptor(world)["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == (
            "Deployment", world.api.documents[DEPLOYMENTS, "shop", "web"]["metadata"]["uid"])  # fmt: skip
        assert descriptor(world)["spec"]["targetRef"]["name"] == "web"
        await asyncio.sleep(15)
        assert [named(world, name) for name in ("a", "b", "x")] == ["web", "web", None]
        assert (DESCRIPTORS, "shop", "other") not in world.api.documents

    play(story, **ON)


def test_what_was_made_goes_when_nobody_asks_for_it_and_pods_lose_its_name(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world)
        await pods(world, "a")
        meta = {"name": "own", "namespace": "shop"}
        world.api.put(DESCRIPTORS, {"metadata": meta, "spec": {"targetRef": {"kind": "Deployment", "name": "mine"}}})
        await begin(world)
        await asyncio.sleep(15)
        assert named(world, "a") == "web"
        deployment(world, enabled=False)
        await asyncio.sleep(15)
        assert (DESCRIPTORS, "shop", "web") not in world.api.documents
        assert named(world, "a") is None
        assert (DESCRIPTORS, "shop", "own") in world.api.documents  # somebody else's stays

    play(story, **ON)


def test_a_descriptor_that_somebody_else_has_named_stays_as_long_as_there_is_one(play: Playing) -> None:
    async def story(world: World) -> None:
        meta = {"name": "own", "namespace": "shop"}
        world.api.put(DESCRIPTORS, {"metadata": meta, "spec": {"targetRef": {"kind": "Deployment", "name": "mine"}}})
        await pods(world, "x", "y", workload="other")
        for pod, name in (("x", "own"), ("y", "gone")):
            there = world.api.documents[PODS, "shop", pod]
            world.api.put(PODS, {**there, "metadata": {**there["metadata"], "annotations": {NAME: name}}})
        await begin(world)
        await asyncio.sleep(15)
        assert [named(world, pod) for pod in ("x", "y")] == ["own", None]

    play(story, **ON)


def test_the_border_of_the_baseline_is_written_and_follows_the_pods(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world)
        await pods(world, "c", "b", "a")
        await begin(world)
        edit(world, baselinePercent=50, extendedIndicator=[{"name": "mem", "baselinePercent": 99, "indicators": {}}])
        await asyncio.sleep(3)
        marks = descriptor(world)["metadata"]["annotations"]
        assert json.loads(marks[SENTINEL])["podName"] == "b"
        assert json.loads(marks[EXTENDED_SENTINEL])["mem"]["podName"] == "b"
        world.api.drop(PODS, "c", "shop")
        await asyncio.sleep(15)
        assert json.loads(descriptor(world)["metadata"]["annotations"][SENTINEL])["podName"] == "b"
        world.api.drop(PODS, "b", "shop")
        await asyncio.sleep(15)
        assert json.loads(descriptor(world)["metadata"]["annotations"][SENTINEL])["podName"] == "a"
        edit(world, baselinePercent=100, extendedIndicator=None)
        await asyncio.sleep(15)
        assert not set(descriptor(world)["metadata"]["annotations"]) & {SENTINEL, EXTENDED_SENTINEL}

    play(story, **ON)


def test_the_status_says_what_the_nodes_tell_of_its_pods(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world)
        await pods(world, "a")
        await pods(world, "b", node="n2")
        await begin(world)
        edit(world, systemIndicator=[{"name": "cpu_usage_ratio", "indicators": []}, {"name": "cpi", "indicators": []}])
        await asyncio.sleep(15)
        await tell(world, "n1", {"a": 1.0})
        await tell(world, "n2", {"b": 3.0, "a": 9.0})  # a is not its pod
        await asyncio.sleep(75)
        await tell(world, "n1", {"a": 1.0})
        await tell(world, "n2", {"b": 3.0})
        await asyncio.sleep(59)
        status = descriptor(world)["status"]
        usage = {one["aggregator"]: one["items"][0]["containers"][0]["usage"] for one in status["aggMetrics"]}
        assert usage == {"avg": {"cpu": "2", "memory": "100"}, "max": {"cpu": "3", "memory": "100"},
                         "sum": {"cpu": "4", "memory": "200"}}  # fmt: skip
        assert status["businessStatus"] == [{"name": "cpu_usage_ratio", "current": 2.0}]
        await asyncio.sleep(200)
        assert descriptor(world)["status"]["aggMetrics"] == []  # nobody tells any more: not the last figures for ever

    play(story, **ON)


def test_what_was_decided_is_said_with_its_figures(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world)
        await pods(world, "c", "b", "a")
        await begin(world)
        bound = [{"indicatorLevel": "UpperBound", "value": 0.6}]
        edit(world, baselinePercent=50, businessIndicator=[{"name": "cpu_usage_ratio", "indicators": bound}])
        await asyncio.sleep(15)
        await tell(world, "n1", {"a": 0.5, "b": 0.9})
        await asyncio.sleep(15)
        deployment(world, enabled=False)
        await asyncio.sleep(15)
        said = {one.verdict: one.why[0] for one in await world.decided("service_profiles")}
        assert list(said) == ["made", "baseline", "poor", "removed"]
        assert said["baseline"].numbers == {"percent": 50, "pods": 3}
        assert said["poor"].rule == "UpperBound"
        assert said["poor"].numbers == {"key": "cpu_usage_ratio", "value": 0.7, "bound": 0.6}

    play(story, **ON)


@pytest.mark.parametrize(
    "spec",
    [
        {"targetRef": {"kind": "Job", "name": "web"}},
        {"targetRef": {"kind": "Deployment"}},
        {"baselinePercent": 101},
        {"baselinePercent": "50"},
        {"systemIndicator": [{"name": "x" * 300}]},
        {"extendedIndicator": {"a": 1}},
    ],
)
def test_one_that_cannot_be_read_says_so_and_holds_up_no_other(play: Playing, spec: dict[str, Any]) -> None:
    async def story(world: World) -> None:
        deployment(world)
        deployment(world, "zoo")
        await pods(world, "z", workload="zoo")
        await begin(world)
        edit(world, **spec)
        await asyncio.sleep(75)
        (condition,) = descriptor(world)["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "Unreadable")
        assert condition["message"].startswith("spec.")
        refused = next(one for one in await world.decided("service_profiles") if one.verdict == "refused")
        assert (refused.about.name, refused.message) == ("web", condition["message"])
        assert named(world, "z") == "zoo"

    play(story, **ON)


def test_while_everything_observes_nothing_is_made(play: Playing) -> None:
    async def story(world: World) -> None:
        world.switch.mode = "observe"
        deployment(world)
        await pods(world, "a")
        await begin(world)
        assert (DESCRIPTORS, "shop", "web") not in world.api.documents

    play(story, **ON)


def test_a_crash_between_any_two_writes_leaves_work_that_the_next_leader_finishes(play: Playing) -> None:
    async def story(world: World) -> None:
        for name in ("web", "zoo"):
            deployment(world, name)
        await pods(world, "a", "b")
        await pods(world, "z", workload="zoo")
        for _ in range(6):
            one = world.central()
            before = len(world.api.writes)
            while len(world.api.writes) == before and named(world, "z") is None:
                await asyncio.sleep(0.5)
            one.task.cancel()
            await one.close()
            world.app = one
        world.app = world.central()
        await asyncio.sleep(60)
        assert [named(world, name) for name in ("a", "b", "z")] == ["web", "web", "zoo"]
        assert len([one for one in world.api.writes if one[:2] == ("create", DESCRIPTORS.plural)]) == 2

    play(story, **ON)


FIGURES = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.floats(0, 1e15))
STANDINGS = st.lists(
    st.builds(
        PodStanding,
        st.floats(NOW_S - 120, NOW_S + 30),
        st.dictionaries(st.sampled_from(["cpi", "pod_cpi", "other"]), st.floats(0, 1e9)),
        st.dictionaries(st.sampled_from(["a", "b"]), FIGURES),
    ),
    max_size=5,
)


def seen(**spec: Any) -> DescriptorSeen:
    meta = {"uid": "1", "namespace": "shop", "name": "web"}
    found = descriptor_of({"metadata": meta, "spec": {"targetRef": {"kind": "Deployment", "name": "web"}} | spec})
    assert found is not None
    return found


@given(STANDINGS)
def test_a_status_is_json_says_only_what_is_fresh_and_keeps_the_order_of_its_figures(found: list[PodStanding]) -> None:
    status = standing(seen(businessIndicator=[{"name": "cpi"}]), found, NOW_S, 15)
    json.dumps(status, allow_nan=False)
    fresh = [one for one in found if NOW_S - one.at_s <= 60]
    assert bool(status["aggMetrics"]) == any(one.containers for one in fresh)
    assert bool(status["businessStatus"]) == any({"cpi", "pod_cpi"} & one.series.keys() for one in fresh)
    if status["aggMetrics"]:
        rows = {one["aggregator"]: one["items"][0]["containers"] for one in status["aggMetrics"]}
        for low, mid, high in zip(rows["avg"], rows["max"], rows["sum"], strict=True):
            if "memory" in low["usage"]:
                assert int(low["usage"]["memory"]) <= int(mid["usage"]["memory"]) <= int(high["usage"]["memory"])
        assert datetime.fromisoformat(status["aggMetrics"][0]["items"][0]["timestamp"]).tzinfo == UTC


def test_an_object_on_its_way_out_is_over_and_one_without_a_name_is_refused() -> None:
    meta = {"uid": "1", "namespace": "shop", "name": "web"}
    assert descriptor_of({"metadata": meta | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}) is None
    with pytest.raises(Refused):
        descriptor_of({"metadata": {}})
