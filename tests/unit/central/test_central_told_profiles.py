"""What central tells nodes of the services of their pods: what is in it, when it is said, and to whom."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from cluster_world import Playing, World, playing
from fixture_types import Virtual
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.recommendation.objects.workloads import DEPLOYMENTS, WorkloadPod
from services.central.core.service_profiles.conditions import conditions
from services.central.core.service_profiles.descriptor import (
    DESCRIPTORS,
    DescriptorSeen,
    descriptor_of,
)
from services.central.core.service_profiles.told import services_of_nodes, targets_of, told_of
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.figures import FiguredPods, PodFigures
from shared.contracts.cluster.profiles import (
    MAX_PODS,
    MAX_SERVICES,
    NO_TARGETS,
    TARGET_BOUNDS,
    IndicatorTargets,
    ServiceProfiles,
)
from shared.core.api_kind import PODS
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received
from shared.wire import Wire

ON = {"kubernetes": {"service_profiles": {"enabled": True}}}


def seen(name: str = "web", **spec: Any) -> DescriptorSeen:
    meta = {"uid": name, "namespace": "shop", "name": name}
    found = descriptor_of({"metadata": meta, "spec": {"targetRef": {"kind": "Deployment", "name": name}} | spec})
    assert found is not None
    assert found.spec is not None, found.problem
    return found


def levels(name: str, **bounds: float) -> dict[str, Any]:
    return {"name": name, "indicators": [{"indicatorLevel": level, "value": value} for level, value in bounds.items()]}


def pod_of(name: str, node: str = "n1", created_s: float = 0.0, *, active: bool = True) -> WorkloadPod:
    created = datetime.fromtimestamp(created_s, UTC).isoformat()
    return WorkloadPod(name, "shop", name, "web", node, created, active, {}, active=active, descriptor="web")


# Targets


@pytest.mark.parametrize(
    ("system", "targets", "problem"),
    [
        ([levels("cpi", UpperBound=1.4)], IndicatorTargets(cpi=1.4), ""),
        ([levels("cpu_usage_ratio", UpperBound=0.6, LowerBound=0.1)], IndicatorTargets(cpu_usage_ratio=0.6), ""),
        ([levels("cpi", UpperBound=2), levels("cpi", UpperBound=1)], IndicatorTargets(cpi=1.0), ""),
        ([levels("cpi", LowerBound=2), {"name": "cpu_sched_wait"}], NO_TARGETS, ""),
        ([levels("mem_access_read_latency", UpperBound=9)], NO_TARGETS, "known are cpu_usage_ratio"),
        ([levels("cpu_usage_ratio", UpperBound=5)], NO_TARGETS, "UpperBound 5, want 0.05 to 0.95"),
        ([levels("cpu_pressure", UpperBound=-1), levels("cpi", UpperBound=1)], IndicatorTargets(cpi=1), "cpu_pressure"),
        (None, NO_TARGETS, ""),
    ],
)
def test_targets_are_the_upper_bounds_that_policies_know(
    system: list[dict[str, Any]] | None, targets: IndicatorTargets, problem: str
) -> None:
    spec = seen(systemIndicator=system).spec
    assert spec is not None
    found, problems = targets_of(spec)
    assert found == targets
    assert bool(problems) == bool(problem)
    assert all(problem in one for one in problems)


@given(st.sampled_from([*TARGET_BOUNDS, "x"]), st.floats(allow_nan=False, allow_infinity=False))
def test_law_a_target_is_within_its_bounds_or_named(name: str, value: float) -> None:
    told = told_of(seen(systemIndicator=[levels(name, UpperBound=value)]), [], {})
    assert (told.targets == NO_TARGETS) == bool(told.problems)


# Who keeps what he asked for


def test_baseline_pods_keep_what_they_asked_for_and_all_do_while_the_service_does_poorly() -> None:
    pods = [pod_of(name, created_s=place) for place, name in enumerate("abcd")]
    spec: dict[str, Any] = {"baselinePercent": 40, "businessIndicator": [levels("latency", UpperBound=100)]}
    well, poor = (told_of(seen(**spec), pods, {"latency": value}) for value in (100.0, 100.1))
    assert well.kept == {"a": "baseline", "b": "baseline"}
    assert poor.kept == {"a": "baseline", "b": "baseline", "c": "poor", "d": "poor"}
    assert poor.poor == ("latency 100.1 above 100",)
    assert told_of(seen(**spec), pods, {}).poor == ()  # nobody tells it: absent is not zero, and no reason to act
    assert told_of(seen(baselinePercent=100), pods, {}).kept.keys() == set("abcd")
    assert told_of(seen(baselinePercent=0), pods, {}).kept == {}


def test_what_cannot_be_read_says_nothing() -> None:
    meta = {"uid": "1", "namespace": "shop", "name": "web"}
    broken = descriptor_of({"metadata": meta, "spec": {"targetRef": {"kind": "Deployment", "name": "web"},
                                                       "baselinePercent": 101}})  # fmt: skip
    assert broken is not None
    assert told_of(broken, [pod_of("a")], {}).kept == {}
    assert [one["type"] for one in conditions(broken, told_of(broken, [], {}), 0)] == ["Valid"]


@pytest.mark.parametrize(
    ("current", "status", "reason"),
    [({"latency": 5.0}, "True", "WithinBounds"), ({"latency": 500.0}, "False", "Poor"), ({}, "Unknown", "NotTold")],
)
def test_the_conditions_say_how_a_service_does_and_what_nodes_are_told(
    current: dict[str, float], status: str, reason: str
) -> None:
    one = seen(baselinePercent=50, businessIndicator=[levels("latency", UpperBound=100)],
               systemIndicator=[levels("cpi", UpperBound=1.4), levels("x", UpperBound=1)])  # fmt: skip
    found = {row["type"]: row for row in conditions(one, told_of(one, [pod_of("a")], current), 1)}
    assert (found["PerformsWell"]["status"], found["PerformsWell"]["reason"]) == (status, reason)
    assert found["TargetsUsed"]["reason"] == "PartlyUsed"
    assert found["TargetsUsed"]["message"].endswith(
        "known are cpu_usage_ratio, cpu_sched_wait, cpu_pressure, cpi; cpi 1.4; "
        "1 of 1 pods keep what they asked for (baseline)"
    )
    plain = seen()
    assert [row["type"] for row in conditions(plain, told_of(plain, [], {}), 0)] == ["Valid", "TargetsUsed"]


# To whom


def test_a_node_is_told_of_its_own_pods_that_run() -> None:
    pods = [pod_of("aa"), pod_of("bb", "n2"), pod_of("cc", ""), pod_of("dd", active=False)]
    one = seen(baselinePercent=100)
    nodes, left_out = services_of_nodes([(one, told_of(one, pods, {}), pods)])
    assert {node: (found.pods, found.message.kept) for node, (found,) in nodes.items()} == {
        "n1": (("aa",), {"baseline": ("aa",)}), "n2": (("bb",), {"baseline": ("bb",)})}  # fmt: skip
    assert left_out == {}


@given(st.lists(st.integers(1, 400), max_size=5))
def test_law_a_message_is_bounded_and_says_what_it_leaves_out(sizes: list[int]) -> None:
    services = []
    for place, size in enumerate(sizes):
        one = seen(f"s{place}", baselinePercent=100)
        pods = [pod_of(f"{place:x}a{number:x}") for number in range(size)]
        services.append((one, told_of(one, pods, {}), pods))
    nodes, left_out = services_of_nodes(services)
    told = sum(len(one.pods) for one in nodes.get("n1", ()))
    assert told == min(MAX_PODS, sum(sizes))
    assert told + left_out.get("n1", 0) == sum(sizes)
    envelope: dict[str, Any] = {"node": "n1", "boot_id": "0123456789abcdef", "seq": 1,
                                "sent_at": "2026-01-02T03:04:05Z"}  # fmt: skip
    ServiceProfiles.model_validate(envelope | {"services": [one.message for one in nodes.get("n1", ())]})


def test_more_services_than_a_message_holds_are_left_out() -> None:
    services = []
    for place in range(MAX_SERVICES + 3):
        one, pods = seen(f"s{place}"), [pod_of(f"a{place:x}")]
        services.append((one, told_of(one, pods, {}), pods))
    nodes, left_out = services_of_nodes(services)
    assert (len(nodes["n1"]), left_out) == (MAX_SERVICES, {"n1": 3})


# At work


@dataclass
class Ear:
    """Hears what every node is told."""

    heard: list[ServiceProfiles] = field(default_factory=list)

    def hear(self, received: Received) -> None:
        self.heard.append(ServiceProfiles.decode(received.data))
        assert received.subject == state_subject(ServiceProfiles, self.heard[-1].node)

    def of(self, node: str) -> list[tuple[str, ...]]:
        """By message, the pods that keep what they asked for."""
        return [tuple(sorted(uid for one in told.services for uids in one.kept.values() for uid in uids))
                for told in self.heard if told.node == node]  # fmt: skip


@pytest.fixture
def play(virtual: Virtual) -> Playing:
    """Run a story in virtual time."""
    return playing(virtual)


async def service(world: World, **spec: Any) -> Ear:
    ear = Ear()
    await MemoryBus(world.bus.broker).subscribe(state_subject(ServiceProfiles, "*"), ear.hear)
    world.api.put(DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "shop"}, "spec": {}})
    target = {"targetRef": {"kind": "Deployment", "name": "web"}}
    world.api.put(DESCRIPTORS, {"metadata": {"name": "web", "namespace": "shop"}, "spec": target | spec})
    return ear


async def pod(world: World, name: str, node: str = "n1") -> str:
    meta = {"name": name, "namespace": "shop", "labels": {"pod-template-hash": "5d"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d"}]}  # fmt: skip
    world.api.put(PODS, {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": "Running"}})
    await asyncio.sleep(1)
    uid: str = world.api.documents[PODS, "shop", name]["metadata"]["uid"]
    return uid


def test_nodes_are_told_at_once_again_each_minute_and_a_farewell(play: Playing) -> None:
    async def story(world: World) -> None:
        ear = await service(world, baselinePercent=50)
        first = await pod(world, "a")
        await pod(world, "b", "n2")
        world.app = world.central()
        await asyncio.sleep(12)
        assert ear.of("n1") == [(first,)]
        assert ear.of("n2") == [()]
        await asyncio.sleep(120)
        assert len(ear.of("n1")) == 3
        world.api.drop(PODS, "a", "shop")
        await asyncio.sleep(12)
        assert ear.of("n1")[3:] == [()]
        assert len(ear.of("n2")[-1]) == 1  # the baseline is where its oldest pod is now
        await asyncio.sleep(600)
        assert len(ear.of("n1")) == 3 + 3  # said until it must have been heard, and no longer

    play(story, **ON)


def test_a_service_that_does_poorly_keeps_what_it_asked_for_until_it_does_well(play: Playing) -> None:
    async def story(world: World) -> None:
        ear = await service(world, businessIndicator=[levels("latency", UpperBound=100)])
        uid = await pod(world, "a")
        world.app = world.central()
        await asyncio.sleep(30)  # its pod carries the descriptor's name by now, without which its figures are nobody's
        wire = Wire(MemoryBus(world.bus.broker), world.clock, node="n1", service="reporter")

        async def tell(value: float) -> None:
            pods = FiguredPods(uids=(uid,), namespaces=("shop",), names=("a",), series={"latency": (value,)})
            await wire.publish(wire.stamp(PodFigures, measured_at=world.clock.wall(), period_s=15.0, pods=pods))
            await asyncio.sleep(12)

        await tell(101.0)
        assert ear.of("n1")[-1] == (uid,)
        rows = {one["type"]: one for one in world.api.documents[DESCRIPTORS, "shop", "web"]["status"]["conditions"]}
        assert rows["PerformsWell"]["message"] == "latency 101 above 100"  # at once, and not within a minute
        await tell(99.0)
        assert ear.of("n1")[-1] == ()
        await tell(101.0)
        await asyncio.sleep(90)
        assert ear.of("n1")[-1] == ()  # nobody tells any more: not the last figure for ever

    play(story, **ON)


def test_while_everything_observes_nodes_are_told_and_nothing_is_written(play: Playing) -> None:
    async def story(world: World) -> None:
        world.switch.mode = "observe"
        ear = await service(world, baselinePercent=100)
        uid = await pod(world, "a")
        world.app = world.central()
        await asyncio.sleep(30)
        assert ear.of("n1") == [(uid,)]
        assert not [one for one in world.api.writes if one[1] == DESCRIPTORS.plural and one[0] != "create"]

    play(story, **ON)


def test_of_two_descriptors_of_a_workload_the_first_counts(play: Playing) -> None:
    async def story(world: World) -> None:
        ear = await service(world, baselinePercent=100)
        target = {"targetRef": {"kind": "Deployment", "name": "web"}, "baselinePercent": 0}
        world.api.put(DESCRIPTORS, {"metadata": {"name": "aaa", "namespace": "shop"}, "spec": target})
        await pod(world, "a")
        world.app = world.central()
        await asyncio.sleep(15)
        assert {one.name for told in ear.heard for one in told.services} == {"aaa"}

    play(story, **ON)
