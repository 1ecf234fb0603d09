"""The node's objects at the API server: the CNR whole, the Node's amounts by what its pods ask for, nothing else."""

from typing import Any

import pytest
from kube_api import Api, FakeKube

from shared.adapters.kube.node import CNRS, KubeNode, remove_offer
from shared.contracts.pod import (
    BATCH_CPU,
    BATCH_MEMORY,
    FIRST_BATCH_CPU,
    FIRST_BATCH_MEMORY,
    RECLAIMED_CPU,
    RECLAIMED_MEMORY,
    TUTORIAL_RECLAIMED_CPU,
    TUTORIAL_RECLAIMED_MEMORY,
)
from shared.errors import Unavailable

NODE, CNR = "/api/v1/nodes/n1", f"{CNRS}/n1"
OTHERS = {"cpu": "48", "memory": "192Gi"}


def document(millis: int | None = 44_000, **spec: object) -> dict[str, Any]:
    offered = {} if millis is None else {TUTORIAL_RECLAIMED_CPU: f"{millis}", TUTORIAL_RECLAIMED_MEMORY: "1Gi"}
    head = {"apiVersion": "node.katalyst.kubewharf.io/v1alpha1", "kind": "CustomNodeResource"}
    return {**head, "metadata": {"name": "n1"}, "spec": spec, "status": {"resourceAllocatable": offered}}


class World:
    """A Node with resources of its own, and a writer for it."""

    def __init__(self) -> None:
        self.api = Api()
        self.asks: dict[str, int] = {}
        self.make_node()
        self.node = KubeNode(FakeKube(self.api), "n1", lambda: self.asks)

    def make_node(self) -> None:
        self.api.put(NODE, {"spec": {}, "status": {"capacity": OTHERS, "allocatable": OTHERS}})

    @property
    def shown(self) -> dict[str, str]:
        status = self.api.objects[NODE]["status"]
        assert status["capacity"] == status["allocatable"]
        return {name: amount for name, amount in status["allocatable"].items() if name not in OTHERS}

    @property
    def patches(self) -> list[str]:
        return [path for method, path, _ in self.api.requests if method == "PATCH"]


@pytest.fixture
def world() -> World:
    return World()


async def test_the_offer_stands_on_the_node_under_both_names_before_the_cnr_tells_it(world: World) -> None:
    await world.node.write(document(a=1))
    assert world.shown == {TUTORIAL_RECLAIMED_CPU: "44k", RECLAIMED_CPU: "44k",
                           TUTORIAL_RECLAIMED_MEMORY: "1073741824", RECLAIMED_MEMORY: "1073741824"}  # fmt: skip
    assert world.patches == [f"{NODE}/status", CNR, f"{CNR}/status"]
    assert world.api.objects[CNR]["spec"] == {"a": 1}
    assert world.api.objects[CNR]["status"] == document()["status"]


async def test_what_pods_ask_for_under_one_name_is_not_offered_under_the_other(world: World) -> None:
    world.asks = {TUTORIAL_RECLAIMED_CPU: 4000}
    await world.node.write(document())
    assert (world.shown[RECLAIMED_CPU], world.shown[TUTORIAL_RECLAIMED_CPU]) == ("40k", "44k")
    world.asks = {TUTORIAL_RECLAIMED_CPU: 4000, RECLAIMED_CPU: 50_000}
    await world.node.show()
    assert (world.shown[RECLAIMED_CPU], world.shown[TUTORIAL_RECLAIMED_CPU]) == ("40k", "0")


async def test_before_the_first_offer_nothing_is_shown(world: World) -> None:
    await world.node.show(again=True)
    assert (world.shown, world.patches) == ({}, [])


async def test_the_node_is_written_on_change_only_and_anew_where_somebody_made_it_anew(world: World) -> None:
    await world.node.write(document())
    before = len(world.patches)
    await world.node.show()
    assert len(world.patches) == before
    world.make_node()
    await world.node.show(again=True)
    assert world.shown[RECLAIMED_CPU] == "44k"


async def test_what_stands_already_is_not_written_again(world: World) -> None:
    await world.node.write(document(a=1))
    for written, patches in (
        (document(a=1), [f"{CNR}/status"]),
        (document(43_000, a=1), [f"{NODE}/status", f"{CNR}/status"]),
        (document(43_000, a=2), [CNR, f"{CNR}/status"]),
    ):
        before = len(world.patches)
        await world.node.write(written)
        assert world.patches[before:] == patches
    assert (world.shown[RECLAIMED_CPU], world.api.objects[CNR]["spec"]) == ("43k", {"a": 2})


async def test_a_spec_that_somebody_changed_or_removed_is_written_again(world: World) -> None:
    await world.node.write(document(a=1))
    world.api.put(CNR, {**world.api.objects[CNR], "spec": {"a": 7}})
    await world.node.write(document(a=1))
    assert world.api.objects[CNR]["spec"] == {"a": 1}
    world.api.remove(CNR)
    await world.node.write(document(a=1))
    assert world.api.objects[CNR]["spec"] == {"a": 1}


@pytest.mark.parametrize("part", ["capacity", "allocatable"])
@pytest.mark.parametrize("amount", ["1", None])
async def test_an_amount_that_somebody_changed_or_removed_is_written_again(
    world: World, part: str, amount: str | None
) -> None:
    await world.node.write(document())
    node = world.api.objects[NODE]
    amounts = {name: one for name, one in node["status"][part].items() if name != RECLAIMED_CPU}
    amounts |= {} if amount is None else {RECLAIMED_CPU: amount}
    world.api.put(NODE, {**node, "status": {**node["status"], part: amounts}})
    await world.node.write(document())
    assert world.shown[RECLAIMED_CPU] == "44k"


async def test_an_offer_of_nothing_is_shown_as_0_and_one_that_is_left_out_leaves_nothing_new(world: World) -> None:
    await world.node.write(document(0))
    assert world.shown[RECLAIMED_CPU] == world.shown[TUTORIAL_RECLAIMED_CPU] == "0"


@pytest.mark.parametrize("path", [f"{NODE}/status", CNR, f"{CNR}/status"])
@pytest.mark.parametrize("code", [403, 404, 409, 500])
async def test_a_refusal_is_unavailable_and_the_next_write_makes_it_good(world: World, path: str, code: int) -> None:
    world.api.refuse["PATCH", path] = code
    with pytest.raises(Unavailable, match="the test says so"):
        await world.node.write(document())
    world.api.refuse.clear()
    await world.node.write(document())
    assert (world.shown[RECLAIMED_CPU], CNR in world.api.objects) == ("44k", True)


async def test_amounts_that_could_not_be_shown_are_shown_at_the_next_change_of_pods(world: World) -> None:
    await world.node.write(document())
    world.asks, world.api.away = {TUTORIAL_RECLAIMED_CPU: 1000}, True
    with pytest.raises(Unavailable, match="no answer"):
        await world.node.show()
    world.api.away = False
    await world.node.show()
    assert world.shown[RECLAIMED_CPU] == "43k"


@pytest.mark.parametrize("falls_before", range(1, 7))
async def test_each_request_of_a_write_tells_what_is_offered_when_it_is_sent(world: World, falls_before: int) -> None:
    await world.node.write(document(2000))
    world.api.requests.clear()

    def latest() -> dict[str, Any]:
        return document(1000 if len(world.api.requests) >= falls_before else 4000, round=1)

    await world.node.write(latest(), latest)
    later = [body for method, _, body in world.api.requests[falls_before:] if method == "PATCH" and body]
    assert not [body for body in later if "'4000'" in str(body) or "'4k'" in str(body)]
    fell = len(world.api.requests) > falls_before
    told = world.api.objects[CNR]["status"]["resourceAllocatable"][TUTORIAL_RECLAIMED_CPU]
    assert (told, world.shown[TUTORIAL_RECLAIMED_CPU]) == (("1000", "1k") if fell else ("4000", "4k"))


async def test_an_offer_that_falls_meanwhile_falls_on_the_node_before_the_cnr_tells_it(world: World) -> None:
    await world.node.write(document(2000))
    world.api.requests.clear()
    first, fallen = document(4000), document(1000)
    await world.node.write(first, lambda: fallen if f"{NODE}/status" in world.patches else first)
    assert world.patches == [f"{NODE}/status", f"{NODE}/status", f"{CNR}/status"]


async def test_what_is_withdrawn_is_gone_and_all_else_stays(world: World) -> None:
    await world.node.write(document())
    await remove_offer(FakeKube(world.api), "n1")
    assert world.api.objects[NODE]["status"] == {"capacity": OTHERS, "allocatable": OTHERS}


def with_batch(millis: int) -> dict[str, Any]:
    written = document()
    written["status"]["resources"] = {"allocatable": {BATCH_CPU: f"{millis}", BATCH_MEMORY: "1Gi"}}
    return written


async def test_batch_resources_stand_under_both_prefixes_and_go_when_they_are_not_offered(world: World) -> None:
    world.asks = {RECLAIMED_CPU: 500}
    await world.node.write(with_batch(4_541))
    batch = {name: amount for name, amount in world.shown.items() if "batch" in name}
    assert batch == {BATCH_CPU: "4041", FIRST_BATCH_CPU: "4041",
                     BATCH_MEMORY: "1073741824", FIRST_BATCH_MEMORY: "1073741824"}  # fmt: skip
    await world.node.write(document())
    assert not [name for name in world.shown if "batch" in name]
    assert world.shown[RECLAIMED_CPU] == "44k"


@pytest.mark.parametrize(("manager", "stay"), [("sublet-reporter", False), ("koord-manager", True)])
async def test_of_a_life_before_only_what_we_wrote_is_taken_away(world: World, manager: str, stay: bool) -> None:
    amounts = OTHERS | {BATCH_CPU: "4541"}
    fields: dict[str, Any] = {"f:status": {"f:allocatable": {f"f:{BATCH_CPU}": {}}}}
    meta = {"managedFields": [{"manager": manager, "fieldsV1": fields}]}
    world.api.put(NODE, {"metadata": meta, "spec": {}, "status": {"capacity": amounts, "allocatable": amounts}})
    await world.node.write(document())
    assert (BATCH_CPU in world.shown) == stay
