"""Evictions by the API server's answers: no budget's slot is burnt, nobody's successor goes, each status is told."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Virtual
from kube_api import Api, FakeKube, pod_path

from shared.adapters.kube.client import Kube
from shared.adapters.kube.evictor import FRESH_S, KubeEvictor
from shared.contracts.pod import Pod

POD = Pod(uid="aa", name="web")
PATH = pod_path("web")
CALL = f"{PATH}/eviction"


class World:
    """One server and who evicts there."""

    def __init__(self) -> None:
        self.api = Api()
        self.evictor = KubeEvictor(FakeKube(self.api))
        self.api.run_pod("web", "aa", app="web")

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The bodies of the eviction calls."""
        return [body or {} for method, path, body in self.api.requests if path == CALL]

    async def outcome(self, pod: Pod = POD, **options: Any) -> str:
        return (await self.evictor.evict(pod, grace_s=30, **options)).outcome


@pytest.fixture
def world() -> World:
    return World()


async def test_a_call_names_the_uid_and_the_grace_and_no_version(world: World) -> None:
    await world.outcome()
    assert world.calls == [{
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web", "namespace": "default"},
        "deleteOptions": {"preconditions": {"uid": "aa"}, "gracePeriodSeconds": 30},
    }]  # fmt: skip


@pytest.mark.parametrize(("grace_s", "sent"), [(0, 1), (0.1, 1), (1.0, 1), (1.2, 2), (30.0, 30)])
async def test_no_pod_leaves_the_api_before_its_processes_have_ended(world: World, grace_s: float, sent: int) -> None:
    await world.evictor.evict(POD, grace_s=grace_s)
    assert world.calls[0]["deleteOptions"]["gracePeriodSeconds"] == sent


async def test_a_dry_run_costs_no_slot(world: World) -> None:
    world.api.budgets["web"] = {"app": "web", "allowed": 1}
    assert await world.outcome(dry_run=True) == "accepted"
    assert world.calls[0]["deleteOptions"]["dryRun"] == ["All"]
    assert world.api.budgets["web"]["allowed"] == 1
    assert await world.evictor.lookup(POD) == "running"


async def test_a_thousand_successors_burn_no_slot_and_none_of_them_goes(world: World) -> None:
    world.api.budgets["web"] = {"app": "web", "allowed": 1}
    for life in range(1000):
        world.api.run_pod("web", f"b{life}", app="web")
        assert await world.outcome() == "gone"
    assert (world.calls, world.api.burnt, world.api.budgets["web"]["allowed"]) == ([], 0, 1)


async def test_a_pod_made_anew_between_the_look_and_the_call_lives_and_the_outcome_is_looked_up(world: World) -> None:
    class Late(FakeKube):
        async def create(self, path: str, body: Mapping[str, Any], *, manager: str, **query: object) -> dict[str, Any]:
            world.api.run_pod("web", "bb", app="web")
            return await super().create(path, body, manager=manager, **query)

    assert (await KubeEvictor(Late(world.api)).evict(POD, grace_s=0)).outcome == "unknown"
    assert world.api.objects[PATH]["metadata"]["uid"] == "bb"
    assert await world.evictor.lookup(POD) == "gone"


async def test_of_a_pod_that_ends_already_nothing_more_is_asked(world: World) -> None:
    assert [await world.outcome() for _ in range(3)] == ["accepted"] * 3
    assert len(world.calls) == 1
    assert await world.evictor.lookup(POD) == "terminating"


async def test_a_budget_without_a_slot_makes_wait_and_two_budgets_are_the_owners_mistake(world: World) -> None:
    world.api.budgets["web"] = {"app": "web", "allowed": 0}
    assert await world.outcome() == "wait"
    assert await world.outcome(dry_run=True) == "wait"
    world.api.budgets["again"] = {"app": "web", "allowed": 5}
    told = await world.evictor.evict(POD, grace_s=30)
    assert (told.outcome, "leave one" in told.detail) == ("refused", True)


STATUSES = {400: "failed", 401: "failed", 403: "refused", 404: "gone", 405: "failed", 409: "unknown", 422: "failed",
            429: "wait", 500: "unknown", 502: "unknown", 503: "unknown", 504: "unknown"}  # fmt: skip


@pytest.mark.parametrize(("code", "outcome"), STATUSES.items())
@pytest.mark.parametrize("dry_run", [False, True])
async def test_each_status_of_an_eviction_call(world: World, code: int, outcome: str, dry_run: bool) -> None:
    world.api.refuse["POST", CALL] = code
    told = await world.evictor.evict(POD, grace_s=30, dry_run=dry_run)
    assert (told.outcome, bool(told.detail)) == (outcome, True)


@pytest.mark.parametrize(("code", "standing"), [(404, "gone"), (401, "unknown"), (403, "unknown"), (429, "unknown"),
                                                (500, "unknown"), (503, "unknown")])  # fmt: skip
async def test_each_status_of_a_look_and_no_call_without_one_that_saw_the_pod(
    world: World, code: int, standing: str
) -> None:
    world.api.refuse["GET", PATH] = code
    assert await world.evictor.lookup(POD) == standing
    assert await world.outcome() == standing
    assert world.calls == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_pod_that_has_finished_is_gone(world: World, phase: str) -> None:
    world.api.run_pod("web", "aa", status={"phase": phase})
    assert await world.evictor.lookup(POD) == await world.outcome() == "gone"
    assert world.calls == []


async def test_a_server_that_is_away_makes_the_outcome_unknown_never_gone(world: World) -> None:
    world.api.away = True
    assert await world.evictor.lookup(POD) == await world.outcome() == "unknown"


async def test_without_a_way_to_a_server_nothing_is_known(tmp_path: Path) -> None:
    assert await KubeEvictor(Kube(tmp_path / "none")).lookup(POD) == "unknown"


class LateKube(FakeKube):
    """Its first answer to a look comes late, and by then the pod has been made anew."""

    def __init__(self, world: World, answers: int) -> None:
        super().__init__(world.api)
        self._world, self._late = world, answers

    async def call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        document = await super().call(method, path, **options)
        if method == "GET" and self._late:
            self._late -= 1
            await asyncio.sleep(FRESH_S)
            self._world.api.run_pod("web", "bb", app="web")
        return document


class LookedUp(Exception):
    """Somebody objects."""


async def test_the_last_check_comes_behind_every_lookup_and_before_the_call(world: World) -> None:
    def objects() -> None:
        assert [method for method, *_ in world.api.requests] == ["GET"]
        raise LookedUp

    with pytest.raises(LookedUp):
        await world.evictor.evict(POD, grace_s=30, last_check=objects)
    assert world.calls == []
    assert await world.outcome() == "accepted"


def test_an_answer_that_came_late_is_asked_for_again_before_anything_is_sent(virtual: Virtual) -> None:
    world = World()
    world.evictor = KubeEvictor(LateKube(world, answers=1))
    assert virtual(world.outcome()) == "gone"
    assert world.calls == []
