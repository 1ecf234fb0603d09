"""The controller of ResourceRecommends in a cluster in memory: from figures on the bus to statuses."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from fixture_types import Virtual
from recommendation_world import ASKED, MIB, Shop, Tell, led, policy, telling

from services.central.core.recommendation.objects.resource_recommend import RESOURCE_RECOMMENDS
from shared.core.api_kind import PODS
from shared.errors import Refused
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import Document, MemoryObjects
from shared.wire import Wire


@pytest.fixture
def tell(virtual: Virtual) -> Tell:
    return telling(virtual)


def test_what_a_workload_uses_becomes_its_recommendation_after_enough_history(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa", "bbbbb")
        shop.recommend()
        await led(shop)
        assert shop.condition("Validated")[:2] == ("True", "Valid")
        assert shop.condition("Initialized")[:2] == ("False", "NoSamples")
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=300)
        assert shop.condition("Initialized")[:2] == ("True", "UsageIsKnown")
        assert shop.condition("RecommendationProvided")[:2] == ("False", "HistoryTooShort")
        assert shop.target == {}
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=480)
        assert shop.condition("RecommendationProvided")[:2] == ("True", "Recommended")
        # The end of the bucket of 0.5 cores, and 30 % more; of 200 MiB the same, in whole MiB.
        assert shop.target == {"cpu": "664m", "memory": "268Mi"}
        rows = shop.status["recommendResources"]["containerRecommendations"]
        assert rows[0]["requests"]["current"] == {"cpu": "1", "memory": "1Gi"}
        assert shop.requests("aaaaa") == ASKED["requests"]

    tell(story)


def test_nothing_is_followed_unless_switched_on(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        shop.recommend()
        await led(shop)
        assert shop.status == {}

    tell(story, recommendation={"enabled": False})


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"targetRef": {"kind": "Deployment", "name": "gone"}}, "WorkloadNotFound"),
        ({"targetRef": {"kind": "StatefulSet", "name": "web"}}, "WorkloadsUnsupported"),
        ({"resourcePolicy": {"algorithmPolicy": {}, "containerPolicies": []}}, "ContainerPoliciesNotFound"),
        ({"resourcePolicy": {"containerPolicies": [policy("main", cpu={"minAllowed": "lots"})]}}, "Unreadable"),
        ({"resourcePolicy": "none"}, "Unreadable"),
    ],
)
def test_what_is_wrong_is_said_in_the_status(tell: Tell, more: Document, reason: str) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa")
        shop.recommend(**more)
        await led(shop)
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=900)
        assert shop.condition("Validated")[:2] == ("False", reason)
        assert shop.condition("Validated")[2]
        assert shop.condition("RecommendationProvided")[:2] == ("False", "NotValidated")
        assert shop.target == {}

    tell(story)


def test_an_object_that_names_another_recommender_is_not_ours(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        chosen = {"algorithmPolicy": {"recommender": "theirs"}, "containerPolicies": [policy("*")]}
        shop.recommend(resourcePolicy=chosen)
        await led(shop)
        await asyncio.sleep(120)
        assert shop.status == {}

    tell(story)


def test_what_is_allowed_is_obeyed(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa")
        shop.recommend(policy("main", cpu={"minAllowed": "2"}, memory={"maxAllowed": "128Mi", "bufferPercent": 0}))
        await led(shop)
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=780)
        assert shop.target == {"cpu": "2", "memory": "128Mi"}

    tell(story)


def killed(shop: Shop, *, memory: str, hours_ago: float = 0.0) -> dict[str, Any]:
    at = (shop.clock.wall() - timedelta(hours=hours_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": at}
    return {
        "resources": {"requests": {"cpu": "1", "memory": memory}},
        "status": {"containerStatuses": [{"name": "main", "restartCount": 1, "lastState": {"terminated": ended}}]},
    }


def test_a_kill_lifts_memory_at_once_and_is_not_lifted_again_by_its_own_lift(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        shop.deployment(resources={"requests": {"memory": "512Mi"}})
        uids = shop.web("aaaaa")
        shop.recommend()
        await led(shop)
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=780)
        assert shop.target["memory"] == "268Mi"
        shop.web("aaaaa", **killed(shop, memory="512Mi"))
        await asyncio.sleep(40)
        assert shop.target["memory"] == "615Mi"  # 1.2 · 512 MiB, sooner than figures are refreshed
        # The pod was resized meanwhile, and killed again: what its owner gave it is lifted, not the lift.
        shop.web("aaaaa", **killed(shop, memory="615Mi"))
        await asyncio.sleep(700)
        assert shop.target["memory"] == "615Mi"

    tell(story)


def test_a_kill_counts_also_when_its_pod_is_gone_and_another_one_leads(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa")
        shop.web("bbbbb", **killed(shop, memory="1Gi"))
        shop.recommend()
        await led(shop)
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=360)
        shop.api.drop(PODS, "web-5d9c-bbbbb", "shop")
        shop.app.task.cancel()
        await asyncio.sleep(20)
        await led(shop)
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=600)
        assert shop.target["memory"] == "1229Mi"

    tell(story)


class Refusing(MemoryObjects):
    """An API server that refuses the status of one object."""

    async def patch(self, kind: Any, document: Any, *, status: bool = False) -> Document | None:
        if document["metadata"]["name"] == "a-first":
            raise Refused("the test says so", reason="Forbidden")
        return await super().patch(kind, document, status=status)


def test_one_object_that_cannot_be_written_holds_up_no_other(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        shop.api = Refusing(shop.clock)
        shop.deployment()
        shop.recommend()
        meta, spec = {"name": "a-first", "namespace": "shop"}, {"targetRef": {"kind": "", "name": ""}}
        shop.api.put(RESOURCE_RECOMMENDS, {"metadata": meta, "spec": spec})
        await led(shop)
        await asyncio.sleep(60)
        assert shop.condition("Validated")[0] == "True"
        assert shop.app.state()["cluster"]["recommendation"]["not_done"] == {"shop/a-first": "the test says so"}

    tell(story)


def test_a_node_tells_of_its_own_pods_alone_and_by_a_clock_that_is_right(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa")
        shop.recommend()
        await led(shop)
        await shop.use(uids, cores=90.0, memory_bytes=90_000 * MIB, for_s=600, node="n2")
        wire = Wire(MemoryBus(shop.bus.broker), shop.clock, node="n1", service="reporter")
        for late_s in (-3600.0 * 24 * 365, -61.0, 601.0):
            await wire.publish(shop.figures(wire, uids, 90.0, 90_000 * MIB, late_s=late_s))
            await asyncio.sleep(5)
            assert "set its clock" in shop.app.state()["cluster"]["recommendation"]["wrong_clocks"]["n1"]
        await wire.publish(shop.figures(wire, uids, 90.0, 90_000 * MIB, name="invented"))
        await asyncio.sleep(60)
        assert shop.condition("Initialized")[1] == "NoSamples"
        assert shop.app.state()["cluster"]["recommendation"]["wrong_clocks"] == {}

    tell(story)


def test_a_recommend_that_goes_is_forgotten_and_its_successor_begins_anew(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa")
        shop.recommend()
        await led(shop)
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=780)
        assert shop.target
        shop.api.drop(RESOURCE_RECOMMENDS, "web", "shop")
        await asyncio.sleep(60)
        shop.recommend()
        await asyncio.sleep(60)
        assert shop.condition("Initialized")[1] == "NoSamples"

    tell(story)
