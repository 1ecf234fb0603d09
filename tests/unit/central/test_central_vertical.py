"""Vertical autoscalers: which work, which pod gets what of them, and what their statuses say."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from cluster_world import Playing, World, playing
from fixture_types import Virtual

from services.central.core.recommendation.objects.resource_recommend import APPLY, RESOURCE_RECOMMENDS
from services.central.core.recommendation.objects.workloads import DEPLOYMENTS
from services.central.core.vertical.stock_vpa import APPLIED_SAID, STOCK_VPAS
from services.central.core.vertical.vpa_object import KATALYST_VPAS, katalyst_vpa_of
from shared.core.api_kind import PODS
from shared.errors import Refused

ON = {"kubernetes": {"vertical": {"enabled": True}}}
ALL = [{"containerName": "*", "controlledResources": ["cpu", "memory"]}]


@pytest.fixture
def play(virtual: Virtual) -> Playing:
    """Run a story in virtual time."""
    return playing(virtual)


def container(cpu: str = "100m", *, name: str = "main", limit: str = "2") -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"cpu": limit, "memory": "1Gi"}}
    return {"name": name, "image": "web", "resources": resources}


def deployment(world: World, *pods: str, **more: Any) -> None:
    one = container(**more)
    spec = {"template": {"spec": {"containers": [one]}}}
    world.api.put(DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec})
    for name in pods:
        pod(world, name, one, containerStatuses=[{"name": one["name"], "resources": one["resources"]}])


def kubelet(world: World) -> None:
    """Put into force what pods ask for now."""
    for document in world.api.of(PODS):
        rows = [{"name": one["name"], "resources": one["resources"]} for one in document["spec"]["containers"]]
        world.api.put(PODS, {**document, "status": {**document["status"], "containerStatuses": rows}})


def pod(world: World, name: str, *containers: Mapping[str, Any], **status: Any) -> None:
    meta = {"name": name, "namespace": "shop", "labels": {"pod-template-hash": "5d"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d"}]}  # fmt: skip
    world.api.put(PODS, {"metadata": meta, "spec": {"nodeName": "n1", "containers": list(containers)},
                         "status": {"phase": "Running", **status}})  # fmt: skip


def recommend(world: World, cpu: str = "500m", *, annotations: Mapping[str, str] | None = None) -> None:
    target = {"containerName": "main", "requests": {"target": {"cpu": cpu}}}
    world.api.put(RESOURCE_RECOMMENDS, {
        "metadata": {"name": "web", "namespace": "shop", "annotations": dict(annotations or {})},
        "spec": {"targetRef": {"kind": "Deployment", "name": "web"}},
        "status": {"recommendResources": {"containerRecommendations": [target]}},
    })  # fmt: skip


def vpa(world: World, name: str = "web", **spec: Any) -> None:
    whole = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "updatePolicy": {"podUpdatingStrategy": "Inplace"},
        "resourcePolicy": {"containerPolicies": ALL},
    }
    world.api.put(KATALYST_VPAS, {"metadata": {"name": name, "namespace": "shop"}, "spec": whole | spec})


def condition(world: World, kind: str, name: str = "web") -> tuple[str, str]:
    status = world.api.documents[KATALYST_VPAS, "shop", name]["status"]
    found = next(one for one in status["conditions"] if one["type"] == kind)
    return found["status"], found["reason"]


def requested(world: World, name: str) -> str:
    found: str = world.api.documents[PODS, "shop", name]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return found


def resizes(world: World) -> list[tuple[str, str, str]]:
    return [one for one in world.api.writes if one[1] == PODS.plural]


async def begin(world: World) -> None:
    world.app = world.central()
    await asyncio.sleep(5)


def test_pods_get_what_is_recommended_one_after_the_other_and_the_status_says_so(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world, "web-5d-a", "web-5d-b")
        recommend(world)
        vpa(world)
        await begin(world)
        await asyncio.sleep(60)
        assert [requested(world, "web-5d-a"), requested(world, "web-5d-b")] == ["500m", "100m"]
        assert condition(world, "Applied") == ("False", "Waiting")
        kubelet(world)
        await asyncio.sleep(15)
        kubelet(world)
        await asyncio.sleep(15)
        assert [requested(world, "web-5d-a"), requested(world, "web-5d-b")] == ["500m", "500m"]
        assert condition(world, "Applied") == ("True", "AsRecommended")
        status = world.api.documents[KATALYST_VPAS, "shop", "web"]["status"]
        assert status["containerResources"][0]["requests"]["target"] == {"cpu": "500m"}
        writes = len(world.api.writes)
        await asyncio.sleep(120)
        assert not [one for one in world.api.writes[writes:] if one[1] in (PODS.plural, KATALYST_VPAS.plural)]

    play(story, **ON)


def test_what_was_decided_is_said_with_the_figures_of_before_and_after(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world, "web-5d-a")
        recommend(world)
        vpa(world)
        await begin(world)
        said = await world.decided("vertical")
        resized = next(one for one in said if one.verdict == "resized")
        assert str(resized.about) == "pod/shop/web-5d-a"
        assert resized.why[0].rule == "by KatalystVerticalPodAutoscaler"
        numbers = resized.why[0].numbers
        assert (numbers["container"], numbers["cpu_request_before"], numbers["cpu_request_after"]) == ("main", 100, 500)
        assert numbers["memory_limit_after"] == numbers["memory_limit_before"] == 1 << 30
        waiting = next(one for one in said if one.about.kind != "pod")
        target = {"container": "main", "cpu_request_target": 500}
        assert (waiting.verdict, waiting.why[0].rule) == ("not_applied", "Resizing")
        assert (waiting.why[1].rule, waiting.why[1].numbers) == ("recommended within its policies", target)

    play(story, **ON)


def test_a_resize_that_kubelet_has_not_done_is_waited_for(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world, "web-5d-b")
        waiting = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
        pod(world, "web-5d-a", container(), conditions=[waiting])
        recommend(world)
        vpa(world)
        await begin(world)
        await asyncio.sleep(60)
        assert resizes(world) == []
        assert condition(world, "Applied") == ("False", "Waiting")

    play(story, **ON)


@pytest.mark.parametrize(
    ("spec", "kind", "reason"),
    [
        ({"updatePolicy": {"podUpdatingStrategy": "Off"}}, "Applied", "Off"),
        ({"updatePolicy": {"podUpdatingStrategy": "Recreate"}}, "Validated", "StrategyUnsupported"),
        ({"updatePolicy": {"podUpdatingStrategy": "Magic"}}, "Validated", "Unreadable"),
        ({"targetRef": {"kind": "Job", "name": "web"}}, "Validated", "TargetUnsupported"),
        ({"targetRef": {"kind": "Deployment", "name": "gone"}}, "Validated", "TargetNotFound"),
        ({"resourcePolicy": {"containerPolicies": [{"containerName": "side"}]}}, "Validated", "ContainerUnknown"),
        ({"resourcePolicy": {"containerPolicies": [*ALL, *ALL]}}, "Validated", "PolicyInvalid"),
        ({"resourcePolicy": {"containerPolicies": [{"containerName": "*", "controlledResources": ["gpu"]}]}},
         "Validated", "ResourceUnsupported"),
        ({"resourcePolicy": {"containerPolicies": [{"containerName": "*", "minAllowed": {"cpu": "2"},
                                                    "maxAllowed": {"cpu": "1"}}]}}, "Validated", "BoundsInvalid"),
        ({"resourcePolicy": {"containerPolicies": [{"containerName": "*", "minAllowed": {"cpu": "x"}}]}},
         "Validated", "Unreadable"),
        ({"resourcePolicy": {"containerPolicies": [{"containerName": "*", "minAllowed": {"cpu": "3"}}]}},
         "Applied", "SomePodsStay"),
        ({"updatePolicy": {"podUpdatingStrategy": "Inplace", "podMatchingStrategy": "ForFreshPod"}}, "Applied",
         "AsRecommended"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_changes_no_pod_and_is_named(
    play: Playing, spec: dict[str, Any], kind: str, reason: str
) -> None:
    async def story(world: World) -> None:
        deployment(world, "web-5d-a")
        recommend(world)
        vpa(world, **spec)
        await begin(world)
        await asyncio.sleep(30)
        assert condition(world, kind)[1] == reason
        assert resizes(world) == []

    play(story, **ON)


def test_of_two_on_one_target_the_older_works(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world, "web-5d-a")
        recommend(world)
        vpa(world, "zoo")
        await asyncio.sleep(2)
        vpa(world, "apple")
        await begin(world)
        await asyncio.sleep(15)
        kubelet(world)
        await asyncio.sleep(15)
        assert condition(world, "Validated", "apple") == ("False", "TargetTaken")
        assert condition(world, "Applied", "zoo") == ("True", "AsRecommended")

    play(story, **ON)


def test_who_is_resized_by_the_recommendation_itself_is_not_resized_twice(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world, "web-5d-a")
        recommend(world, annotations={APPLY: "InPlace"})
        vpa(world)
        await begin(world)
        await asyncio.sleep(30)
        assert condition(world, "Validated") == ("False", "TargetTaken")
        assert resizes(world) == []

    play(story, **ON)


def test_without_a_recommendation_nothing_is_given(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world, "web-5d-a")
        vpa(world)
        await begin(world)
        assert condition(world, "RecommendationProvided") == ("False", "NothingRecommended")
        recommend(world)
        await asyncio.sleep(30)
        assert requested(world, "web-5d-a") == "500m"

    play(story, **ON)


def test_while_everything_observes_the_status_says_what_would_be_done(play: Playing) -> None:
    async def story(world: World) -> None:
        world.switch.mode = "observe"
        deployment(world, "web-5d-a")
        recommend(world)
        vpa(world)
        await begin(world)
        await asyncio.sleep(30)
        assert condition(world, "Applied") == ("False", "Observing")
        assert resizes(world) == []

    play(story, **ON)


def test_one_that_fails_holds_up_no_other(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world, "web-5d-a")
        recommend(world)
        vpa(world, "a", targetRef={"kind": "Job", "name": "x"})
        vpa(world, "web")
        patch = world.api.patch

        async def picky(kind: Any, document: Mapping[str, Any], *, status: bool = False) -> Any:
            if kind == KATALYST_VPAS and document["metadata"]["name"] == "a":
                raise Refused("no", reason="Forbidden")
            return await patch(kind, document, status=status)

        world.api.patch = picky  # type: ignore[method-assign]
        await begin(world)
        await asyncio.sleep(30)
        assert requested(world, "web-5d-a") == "500m"
        assert list(world.app.state()["cluster"]["vertical"]["not_written"]) == ["shop/a"]

    play(story, **ON)


def test_a_new_leader_goes_on(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world, "web-5d-a", "web-5d-b")
        recommend(world)
        vpa(world)
        await begin(world)
        await world.app.close()
        world.app.task.cancel()
        world.app = world.central()
        await asyncio.sleep(60)
        assert len(resizes(world)) == 1
        kubelet(world)
        await asyncio.sleep(60)
        kubelet(world)
        assert [requested(world, "web-5d-a"), requested(world, "web-5d-b")] == ["500m", "500m"]
        assert len(resizes(world)) == 2

    play(story, **ON)


STOCK = {"kubernetes": {"vertical": {"enabled": True, "stock": True}}}


def stock_vpa(world: World, *, mode: str = "Off", apply: str = "InPlace", **policy: Any) -> None:
    target = {"targetRef": {"kind": "Deployment", "name": "web"}, "updatePolicy": {"updateMode": mode}}
    rows = [{"containerName": "main", **policy}] if policy else []
    recommended = {"containerName": "main", "target": {"cpu": "300m"}, "lowerBound": {"cpu": "1m"}}
    world.api.put(STOCK_VPAS, {
        "metadata": {"name": "web", "namespace": "shop", "annotations": {APPLY: apply}},
        "spec": {**target, "resourcePolicy": {"containerPolicies": rows}},
        "status": {"recommendation": {"containerRecommendations": [recommended, {"containerName": 3}, "x"]}},
    })  # fmt: skip


@pytest.mark.parametrize(
    ("how", "cpu", "said"),
    [
        ({}, "300m", "AsRecommended"),
        ({"minAllowed": {"cpu": "1"}}, "1", "AsRecommended"),
        ({"mode": "Auto"}, "100m", "UpdaterWorks"),
        ({"apply": "Off"}, "100m", ""),
    ],
)
def test_a_stock_one_that_asks_for_it_works_by_its_own_recommendation(
    play: Playing, how: dict[str, Any], cpu: str, said: str
) -> None:
    async def story(world: World) -> None:
        deployment(world, "web-5d-a")
        stock_vpa(world, **how)
        await begin(world)
        kubelet(world)
        await asyncio.sleep(20)
        assert requested(world, "web-5d-a") == cpu
        annotations = world.api.documents[STOCK_VPAS, "shop", "web"]["metadata"]["annotations"]
        assert annotations.get(APPLIED_SAID, "").startswith(said)
        assert "conditions" not in world.api.documents[STOCK_VPAS, "shop", "web"]["status"]

    play(story, **STOCK)


def test_a_container_that_a_stock_one_leaves_alone_stays(play: Playing) -> None:
    async def story(world: World) -> None:
        deployment(world, "web-5d-a")
        stock_vpa(world)
        there = world.api.documents[STOCK_VPAS, "shop", "web"]
        off = {"containerPolicies": [{"containerName": "main", "mode": "Off"}]}
        world.api.put(STOCK_VPAS, {**there, "spec": {**there["spec"], "resourcePolicy": off}})
        await begin(world)
        assert requested(world, "web-5d-a") == "100m"

    play(story, **STOCK)


def test_an_object_on_its_way_out_is_over_and_one_without_a_name_is_refused() -> None:
    meta = {"uid": "1", "namespace": "shop", "name": "web"}
    assert katalyst_vpa_of({"metadata": meta | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}) is None
    with pytest.raises(Refused):
        katalyst_vpa_of({"metadata": {}})
