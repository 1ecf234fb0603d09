"""Handing nodes over in a cluster: in order, one by one, never both at once; and again, and back."""

import asyncio
from typing import Any

import pytest
from fixture_types import Virtual
from handover_world import World, daemon_set

from shared.adapters.clock import LoopClock
from shared.errors import Conflict, Refused, SubletError, Unavailable
from sublet.migrate.labels import TAKEOVER
from sublet.migrate.takeover.origin import ORIGINS
from sublet.migrate.takeover.run import Direction, Handover, hand_over

PREPARED = [
    "KatalystCustomConfig/sublet-takeover",
    "AdminQoSConfiguration/sublet-takeover-enforce",
    "AdminQoSConfiguration/sublet-takeover-observe",
    "DaemonSet/koordlet",
    "ConfigMap/slo-controller-config",
]


async def go(world: World, direction: Direction, *nodes: str, applies: bool = True, wait_s: float = 60) -> list[str]:
    said: list[str] = []
    wanted = Handover(direction, ORIGINS["koordinator"], nodes, applies=applies, wait_s=wait_s)
    await hand_over(wanted, world, LoopClock(), said.append)
    return said


def test_a_node_is_taken_over_and_given_back(virtual: Virtual) -> None:
    world = World("n1", "n2")

    async def both() -> None:
        await go(world, "takeover", "n1")
        assert world.changes == [*PREPARED, "n1 begun", "n1 left", "n1 done"]
        assert (world.there["n1"].mode, world.there["n1"].koordlet) == ("enforce", False)
        assert (world.there["n2"].mode, world.there["n2"].koordlet) == ("observe", True)
        world.changes.clear()
        await go(world, "back", "n1")
        assert world.changes == ["n1 back", "n1 None"]
        await asyncio.sleep(10)
        world.live("n1")
        assert (world.there["n1"].mode, world.there["n1"].koordlet) == ("observe", True)

    virtual(both())
    assert world.both_enforced == []


def test_a_second_time_changes_nothing(virtual: Virtual) -> None:
    world = World("n1")

    async def twice() -> list[str]:
        await go(world, "takeover", "n1")
        world.changes.clear()
        return await go(world, "takeover", "n1")

    assert virtual(twice()) == ["node n1 is Sublet's"]
    assert world.changes == []


@pytest.mark.parametrize("nodes", [("n1",), ()])
def test_what_an_upgrade_of_the_other_system_took_away_is_put_back(virtual: Virtual, nodes: tuple[str, ...]) -> None:
    world = World("n1", "n2")

    async def upgraded() -> list[str]:
        await go(world, "takeover")
        world.changes.clear()
        world.objects["koordlet"] = daemon_set()
        await asyncio.sleep(10)
        world.live("n1")
        assert world.there["n1"].koordlet
        return await go(world, "takeover", *nodes)

    said = virtual(upgraded())
    assert world.changes == ["DaemonSet/koordlet"]
    assert "node n1 is Sublet's" in said
    assert not world.there["n1"].koordlet


def test_what_is_said_for_all_nodes_by_now_holds_on_those_that_were_taken_over(virtual: Virtual) -> None:
    world = World("n1")

    async def changed() -> None:
        await go(world, "takeover", "n1")
        world.changes.clear()
        world.configs.append(config("all", config={"evictionConfig": {"dryRun": ["*"]}}))
        await go(world, "takeover")

    virtual(changed())
    assert world.changes == PREPARED[1:3]
    assert world.configs[-1]["spec"]["config"] == {"evictionConfig": {"dryRun": ["*"]}, "sublet": {"mode": "observe"}}


def test_a_node_that_would_enforce_without_its_label_keeps_it(virtual: Virtual) -> None:
    world = World("n1")
    virtual(go(world, "takeover", "n1"))
    world.changes.clear()
    world.mode = "enforce"
    with pytest.raises(
        Conflict, match=r"node n1: without its label .* the mode of all nodes has Sublet enforce beside"
    ):
        virtual(go(world, "back", "n1"))
    assert world.changes == []
    world.mode = "observe"
    virtual(go(world, "back", "n1"))
    assert world.changes == ["n1 back", "n1 None"]
    assert world.both_enforced == []


def test_what_was_never_begun_is_not_prepared_to_be_given_back(virtual: Virtual) -> None:
    world = World("n1")
    assert virtual(go(world, "back", "n1")) == ["node n1 is Koordinator's"]
    assert world.changes == []


@pytest.mark.parametrize("cut_s", [0.5, 3, 7, 11, 14, 20])
def test_it_goes_on_where_it_was_cut_short(virtual: Virtual, cut_s: float) -> None:
    world = World("n1")

    async def cut() -> None:
        first = asyncio.ensure_future(go(world, "takeover", "n1"))
        await asyncio.wait([first], timeout=cut_s)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await go(world, "takeover", "n1")
        assert (world.there["n1"].mode, world.there["n1"].koordlet) == ("enforce", False)

    virtual(cut())
    assert world.both_enforced == []
    assert len(world.changes) == len(set(world.changes))


@pytest.mark.parametrize("direction", ["takeover", "back"])
def test_a_dry_run_says_everything_and_changes_nothing(virtual: Virtual, direction: Direction) -> None:
    world = World("n1")
    if direction == "back":
        virtual(go(world, "takeover", "n1"))
        world.changes.clear()
    said = virtual(go(world, direction, "n1", applies=False))
    assert world.changes == []
    labels = {"takeover": ["begun", "left", "done"], "back": ["back"]}[direction]
    assert [line.partition(f"{TAKEOVER}=")[2].partition(" ")[0] for line in said if f"n1 {TAKEOVER}=" in line] == labels
    assert all("(dry run)" in line for line in said)
    assert direction == "back" or [line.partition(" ")[0] for line in said[:5]] == PREPARED


def test_all_nodes_go_one_by_one_and_it_ends_at_the_first_that_fails(virtual: Virtual) -> None:
    world = World("n3", "n1", "n2")
    world.there["n2"].well = False
    with pytest.raises(Unavailable, match="node n2: Sublet's agent is not well: ServicesReady: qrm is silent"):
        virtual(go(world, "takeover"))
    assert [one for one in world.changes if one.startswith("n")] == ["n1 begun", "n1 left", "n1 done"]
    world.there["n2"].well = True
    world.changes.clear()
    virtual(go(world, "takeover"))
    assert [one.partition(" ")[0] for one in world.changes] == ["n2"] * 3 + ["n3"] * 3
    world.changes.clear()
    virtual(go(world, "back"))
    assert [one.partition(" ")[0] for one in world.changes] == ["n1"] * 2 + ["n2"] * 2 + ["n3"] * 2


def test_a_node_that_does_not_get_there_is_named_with_what_is_missing(virtual: Virtual) -> None:
    world = World("n1")

    async def broken() -> None:
        task = asyncio.ensure_future(go(world, "takeover", "n1", wait_s=5))
        await asyncio.sleep(1)
        world.objects["slo-controller-config"]["data"] = {"resource-threshold-config": "{}"}  # somebody took it out
        await task

    with pytest.raises(Unavailable, match=r"after 5 s the NodeSLO of n1 still.*back n1 --apply"):
        virtual(broken())
    assert world.changes[-1] == "n1 begun"


def config(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "kube-system", "uid": name}, "spec": spec}


@pytest.mark.parametrize(
    ("world", "nodes", "error", "words"),
    [
        (World("n1"), ("n2",), Refused, "node n2: there is no such node"),
        (
            World(
                "n1", configs=[config("own", ephemeralSelector={"nodeNames": ["n1"], "lastDuration": "1h"}, config={})]
            ),
            ("n1",),
            Conflict,
            "node n1 has the AdminQoSConfiguration kube-system/own, and gets one only; write `config.sublet.mode",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_changes(
    virtual: Virtual, world: World, nodes: tuple[str, ...], error: type[SubletError], words: str
) -> None:
    with pytest.raises(error, match=words):
        virtual(go(world, "takeover", *nodes))
    assert world.changes == []


def test_what_the_api_server_refuses_ends_it(virtual: Virtual) -> None:
    world = World("n1")
    world.refuses = "DaemonSet/koordlet"
    with pytest.raises(Unavailable, match="DaemonSet/koordlet: forbidden"):
        virtual(go(world, "takeover", "n1"))
    assert "n1 begun" not in world.changes
