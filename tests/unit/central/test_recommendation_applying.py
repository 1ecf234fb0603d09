"""Recommendations that are applied to pods that run, in a cluster in memory."""

import asyncio
from typing import Any

import pytest
from fixture_types import Virtual
from recommendation_world import ASKED, MIB, Shop, Tell, led, telling

from shared.core.api_kind import POD_RESIZES, PODS
from shared.fakes.memory_objects import Document, MemoryObjects


@pytest.fixture
def tell(virtual: Virtual) -> Tell:
    return telling(virtual)


def test_pods_are_resized_one_after_the_other_where_it_is_asked_for(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa", "bbbbb")
        shop.recommend(apply=True)
        await led(shop)
        await shop.use(uids, cores=3.0, memory_bytes=900 * MIB, for_s=720)
        resized = [shop.requests(suffix)["cpu"] for suffix in ("aaaaa", "bbbbb")]
        assert resized[0] == shop.target["cpu"] == "3935m"
        await asyncio.sleep(120)
        assert shop.requests("bbbbb") == {"cpu": shop.target["cpu"], "memory": "1Gi"}
        assert shop.condition("Applied")[:2] == ("True", "WithinBounds")
        limits = shop.api.documents[PODS, "shop", "web-5d9c-aaaaa"]["spec"]["containers"][0]["resources"]["limits"]
        assert limits == ASKED["limits"]

    tell(story)


def test_while_kubelet_has_not_done_no_further_pod_is_resized(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa", "bbbbb")
        shop.recommend(apply=True)
        await led(shop)
        waits = [{"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no room"}]
        shop.web("ccccc", status={"conditions": waits})
        await shop.use(uids, cores=3.0, memory_bytes=900 * MIB, for_s=900)
        assert shop.condition("Applied") == ("False", "Waiting", "pod web-5d9c-ccccc: its resize is Deferred: no room")
        assert {shop.requests(suffix)["cpu"] for suffix in ("aaaaa", "bbbbb", "ccccc")} == {"1"}

    tell(story)


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}, "request_above_limit"),
        ({"requests": {"cpu": "4", "memory": "1Ti"}, "limits": {"cpu": "4", "memory": "1Ti"}}, "qos_class_changes"),
        ({}, "qos_class_changes"),
    ],
)
def test_a_pod_that_would_be_of_another_class_stays_as_it_is(tell: Tell, resources: Any, why: str) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa", resources=resources)
        shop.recommend(apply=True)
        await led(shop)
        await shop.use(uids, cores=3.0, memory_bytes=900 * MIB, for_s=900)
        assert shop.condition("Applied") == ("False", "SomePodsStay", f"web-5d9c-aaaaa: {why}")
        assert shop.requests("aaaaa") == resources.get("requests", {})

    tell(story)


class OldApi(MemoryObjects):
    """An API server before Kubernetes 1.33."""

    async def patch(self, kind: Any, document: Any, *, status: bool = False) -> Document | None:
        return None if kind == POD_RESIZES else await super().patch(kind, document, status=status)


def test_an_api_server_that_resizes_nothing_is_named(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        old = OldApi(shop.clock)
        shop.api = old
        shop.deployment()
        uids = shop.web("aaaaa")
        shop.recommend(apply=True)
        await led(shop)
        await shop.use(uids, cores=3.0, memory_bytes=900 * MIB, for_s=900)
        assert shop.condition("Applied")[:2] == ("False", "ResizeUnsupported")

    tell(story)
