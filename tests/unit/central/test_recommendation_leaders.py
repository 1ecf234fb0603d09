"""Who leads next goes on with what was learned, whenever the one before him died."""

import asyncio
from typing import Any

import pytest
from fixture_types import Virtual
from recommendation_world import MIB, Shop, Tell, led, telling

from services.central.adapters.recommendation.recommend_objects import USAGE_CHECKPOINTS
from services.central.core.recommendation.objects.resource_recommend import RESOURCE_RECOMMENDS
from shared.core.api_kind import POD_RESIZES
from shared.errors import Unavailable
from shared.fakes.memory_objects import Document, MemoryObjects


@pytest.fixture
def tell(virtual: Virtual) -> Tell:
    return telling(virtual)


def test_the_next_leader_goes_on_from_the_checkpoint(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa")
        shop.recommend()
        await led(shop)
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=540)
        (kept,) = shop.checkpoints
        assert kept["metadata"]["ownerReferences"][0]["name"] == "web"
        shop.app.task.cancel()
        await asyncio.sleep(60)
        shop.app = shop.central()
        await asyncio.sleep(10)
        # What the new life sees alone would not be enough.
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=300)
        assert shop.condition("RecommendationProvided")[0] == "True"
        assert shop.target == {"cpu": "664m", "memory": "268Mi"}

    tell(story)


def test_a_checkpoint_that_nobody_can_read_begins_a_history_anew_and_stops_nobody(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa")
        shop.recommend()
        owner = shop.api.documents[RESOURCE_RECOMMENDS, "shop", "web"]["metadata"]["uid"]
        for name, usage in (("web", '{"containers": 7}'), ("x", "[" * 100_000), ("y", 3)):
            meta = {"name": name, "namespace": "shop", "ownerReferences": [{"uid": owner}]}
            shop.api.put(USAGE_CHECKPOINTS, {"metadata": meta, "spec": {"usage": usage}})
        await led(shop)
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=780)
        assert shop.target == {"cpu": "664m", "memory": "268Mi"}

    tell(story)


def test_figures_that_come_before_the_checkpoints_were_read_do_not_replace_them(tell: Tell) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa")
        shop.recommend()
        await led(shop)
        await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=540)
        before = shop.checkpoints[0]["spec"]["usage"]
        shop.app.task.cancel()
        await asyncio.sleep(30)
        listed = MemoryObjects.list

        async def away(self: MemoryObjects, kind: Any, *, fields: str = "") -> Any:
            if kind == USAGE_CHECKPOINTS:
                self.online = False
            try:
                return await listed(self, kind, fields=fields)
            finally:
                self.online = True

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MemoryObjects, "list", away)
            shop.app = shop.central()
            await shop.use(uids, cores=0.5, memory_bytes=200 * MIB, for_s=900)
            assert shop.checkpoints[0]["spec"]["usage"] == before
            assert "away" in shop.app.state()["cluster"]["recommendation"]["failure"]

    tell(story)


class Dying(MemoryObjects):
    """The API server as a central sees it that dies behind so many writes of recommendations."""

    def __init__(self, server: MemoryObjects, writes_left: int) -> None:
        self.__dict__ = dict(server.__dict__)
        self.writes_left = writes_left

    def _spend(self, kind: Any) -> None:
        if kind in (RESOURCE_RECOMMENDS, POD_RESIZES, USAGE_CHECKPOINTS):
            self.writes_left -= 1
            if self.writes_left < 0:
                raise Unavailable("this central is dead", reason="dead")

    async def patch(self, kind: Any, document: Any, *, status: bool = False) -> Document | None:
        self._spend(kind)
        return await super().patch(kind, document, status=status)

    async def apply(self, kind: Any, document: Any, *, manager: str, status: bool = False) -> Document:
        self._spend(kind)
        return await super().apply(kind, document, manager=manager, status=status)


@pytest.mark.parametrize("writes", range(12))
def test_after_a_death_behind_any_write_the_next_leader_ends_where_the_first_would_have(
    tell: Tell, writes: int
) -> None:
    async def story(shop: Shop) -> None:
        uids = shop.web("aaaaa", "bbbbb")
        shop.recommend(apply=True)
        shop.app = shop.central(Dying(shop.api, writes))
        await asyncio.sleep(5)
        await shop.use(uids, cores=3.0, memory_bytes=900 * MIB, for_s=840)
        shop.app.task.cancel()
        await asyncio.sleep(20)
        await led(shop)
        await shop.use(uids, cores=3.0, memory_bytes=900 * MIB, for_s=900)
        assert shop.condition("Applied")[:2] == ("True", "WithinBounds")
        assert [shop.requests(suffix)["cpu"] for suffix in ("aaaaa", "bbbbb")] == ["3935m", "3935m"]
        assert len([w for w in shop.api.writes if w[1] == "pods"]) == 2
        assert len(shop.checkpoints) == 1

    tell(story)
