"""CPUs of their own for pods: who gets them, who keeps them, who cannot."""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from services.qrm.core.placement.assignment import Assignment, Supply, bind_reclaimed
from services.qrm.core.placement.assignment import assign as assign_wishes
from services.qrm.core.placement.dedicated_pods import Owned
from services.qrm.core.placement.requests import CpuRequest, Kind
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape

TUTORIAL_NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))
GIB = 1 << 30


def wish(name: str, cores: float, kind: Kind = "dedicated", memory_bytes: int = 0, **more: Any) -> CpuRequest:
    return CpuRequest(kind, f"uid-{name}", f"default/{name}", cores, memory_bytes, **more)


def assign(
    topology: Topology,
    free: CpuSet,
    wishes: list[CpuRequest],
    held: dict[str, CpuSet],
    memory_bytes: dict[int, int],
    shared_cores: float = 0.0,
) -> Assignment:
    return assign_wishes(Supply(topology, free, memory_bytes), wishes, held, shared_cores)


def cpus(found: Assignment) -> dict[str, str]:
    return {uid.removeprefix("uid-"): str(own.cpus) for uid, own in found.owned.items()}


def test_dedicated_pods_get_whole_cores_of_one_node() -> None:
    found = assign(TUTORIAL_NODE, TUTORIAL_NODE.all, [wish("a", 4), wish("b", 6)], {}, {})
    assert cpus(found) == {"a": "0-1,24-25", "b": "2-4,26-28"}
    assert found.owned["uid-a"] == Owned("dedicated", CpuSet.parse("0-1,24-25"), (0,))
    assert found.problems == {}


def test_memory_chooses_the_node() -> None:
    found = assign(
        TUTORIAL_NODE, TUTORIAL_NODE.all, [wish("a", 4, memory_bytes=9 * GIB)], {}, {0: 8 * GIB, 1: 16 * GIB}
    )
    assert found.owned["uid-a"].numas == (1,)


def test_memory_of_pods_that_are_placed_is_accounted_for() -> None:
    wishes = [wish("a", 2, memory_bytes=6 * GIB), wish("b", 2, memory_bytes=6 * GIB)]
    found = assign(TUTORIAL_NODE, TUTORIAL_NODE.all, wishes, {}, {0: 8 * GIB, 1: 8 * GIB})
    assert [own.numas for own in found.owned.values()] == [(0,), (1,)]


def test_an_exclusive_pod_has_its_nodes_for_itself() -> None:
    found = assign(TUTORIAL_NODE, TUTORIAL_NODE.all, [wish("a", 2, exclusive=True), wish("b", 4)], {}, {})
    assert cpus(found) == {"a": "0-11,24-35", "b": "12-13,36-37"}


def test_a_second_exclusive_pod_that_would_leave_nothing_for_the_others_is_refused() -> None:
    found = assign(
        TUTORIAL_NODE, TUTORIAL_NODE.all, [wish("a", 2, exclusive=True), wish("b", 2, exclusive=True)], {}, {}
    )
    assert list(found.owned) == ["uid-a"]
    assert "stay for the other pools" in found.problems["default/b"]


def test_more_than_there_is_has_a_word_with_every_number() -> None:
    found = assign(TUTORIAL_NODE, TUTORIAL_NODE.all, [wish("a", 60)], {}, {})
    assert found.owned == {}
    assert "60 CPUs" in found.problems["default/a"]
    assert "{0: 24, 1: 24}" in found.problems["default/a"]


def test_a_pod_of_two_nodes_is_spread_evenly_where_it_asks() -> None:
    found = assign(TUTORIAL_NODE, TUTORIAL_NODE.all, [wish("a", 8, numa_number=2, evenly=True)], {}, {})
    assert cpus(found) == {"a": "0-1,12-13,24-25,36-37"}


def test_named_nodes_are_kept_to() -> None:
    assert assign(TUTORIAL_NODE, TUTORIAL_NODE.all, [wish("a", 4, numa_ids=(1,))], {}, {}).owned["uid-a"].numas == (1,)


def test_bound_shared_pods_of_a_node_have_one_pool_of_what_they_asked_for() -> None:
    wishes = [wish("a", 1.5, "bound-share", numa_ids=(0,)), wish("b", 1, "bound-share", numa_ids=(0,))]
    found = assign(TUTORIAL_NODE, TUTORIAL_NODE.all, wishes, {}, {})
    assert found.owned["uid-a"] == found.owned["uid-b"] == Owned("share-NUMA0", CpuSet.parse("0-1,24"), (0,))


def named(name: str, cores: float) -> CpuRequest:
    return wish(name, cores, "named-share", pool=name)


def test_a_pool_that_does_not_come_to_a_cpu_is_none() -> None:
    found = assign(TUTORIAL_NODE, TUTORIAL_NODE.all, [named(f"p{number}", 0.04) for number in range(100)], {}, {})
    assert found.owned == {}
    assert found.problems["default/p7"] == (
        "pool 'p7' is asked 0.04 CPUs for, want at least 1: its pods run in the shared pool"
    )


def test_pools_together_have_no_more_than_their_pods_ask_for_together() -> None:
    """Each rounded up by itself would be 9 CPUs for 7; the largest remainders are."""
    found = assign(
        TUTORIAL_NODE, TUTORIAL_NODE.all, [named("a", 1.5), named("b", 1.5), named("c", 1.6), named("d", 2.4)], {}, {}
    )
    assert {own.pool: len(own.cpus) for own in found.owned.values()} == {"a": 2, "b": 1, "c": 2, "d": 2}


def test_what_the_shared_pods_ask_for_remains_for_them() -> None:
    found = assign(TUTORIAL_NODE, TUTORIAL_NODE.all, [named("a", 20), named("b", 10)], {}, {}, shared_cores=30)
    assert len(TUTORIAL_NODE.all - found.cpus) == 30
    assert len(found.cpus) == 18


def test_of_more_pools_than_cpus_those_that_have_some_stay_and_the_others_hear_why() -> None:
    held = {"uid-z": CpuSet.parse("5")}
    found = assign(
        TUTORIAL_NODE,
        TUTORIAL_NODE.all,
        [named("z", 1), *(named(f"p{number:02}", 1) for number in range(46))],
        held,
        {},
    )
    assert "uid-z" in found.owned
    assert list(found.problems) == ["default/p45"]
    assert "one of 47 pools, 46 CPUs can be given" in found.problems["default/p45"]


def test_bound_shared_pods_go_where_there_is_most_room() -> None:
    found = assign(TUTORIAL_NODE, TUTORIAL_NODE.all, [wish("a", 20), wish("b", 3, "bound-share")], {}, {})
    assert found.owned["uid-b"].numas == (1,)


def test_a_named_pool_has_what_its_pods_asked_for() -> None:
    wishes = [wish("a", 1.5, "named-share", pool="batch"), wish("b", 1, "named-share", pool="batch")]
    found = assign(TUTORIAL_NODE, TUTORIAL_NODE.all, wishes, {}, {})
    assert found.owned["uid-a"] == found.owned["uid-b"] == Owned("batch", CpuSet.parse("0-1,24"))


def test_a_pod_grows_from_what_it_has() -> None:
    held = {"uid-a": CpuSet.parse("5,29")}
    assert cpus(assign(TUTORIAL_NODE, TUTORIAL_NODE.all, [wish("a", 4)], held, {})) == {"a": "0,5,24,29"}


def test_a_pod_shrinks_within_what_it_has() -> None:
    held = {"uid-a": CpuSet.parse("4-6,28-30")}
    assert cpus(assign(TUTORIAL_NODE, TUTORIAL_NODE.all, [wish("a", 2)], held, {})) == {"a": "4,28"}


def test_cpus_that_went_offline_are_replaced_on_the_same_node() -> None:
    smaller = Topology.of([cpu for cpu in TUTORIAL_NODE.cpus if cpu.id != 29])
    held = {"uid-a": CpuSet.parse("5,6,29,30")}
    found = assign(smaller, smaller.all, [wish("a", 4)], held, {})
    assert held["uid-a"] - CpuSet.parse("29") <= found.owned["uid-a"].cpus
    assert found.owned["uid-a"].numas == (0,)


def test_reclaimed_pods_stay_on_their_node_while_the_pool_is_there() -> None:
    bound = [wish("r", 1, "bound-reclaim")]
    pool = CpuSet.parse("0-3,12-20")
    assert bind_reclaimed(TUTORIAL_NODE, bound, pool, {}).owned["uid-r"].cpus == CpuSet.parse("12-20")
    held = {"uid-r": CpuSet.parse("5")}
    assert bind_reclaimed(TUTORIAL_NODE, bound, pool, held).owned["uid-r"].cpus == CpuSet.parse("0-3")
    elsewhere = bind_reclaimed(TUTORIAL_NODE, [wish("r", 1, "bound-reclaim", numa_ids=(0,))], CpuSet.parse("12-20"), {})
    assert (dict(elsewhere.owned), list(elsewhere.problems)) == ({}, ["default/r"])


MACHINES = st.builds(
    UniformShape,
    sockets=st.integers(1, 2),
    numa_per_socket=st.integers(1, 2),
    cores_per_numa=st.integers(1, 6),
    threads=st.integers(1, 2),
).map(Topology.uniform)


MANY_KINDS: list[Kind] = ["dedicated", "bound-share", "named-share"]


@st.composite
def many(draw: st.DrawFn) -> list[CpuRequest]:
    wishes = []
    for number in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(MANY_KINDS))
        more: dict[str, Any] = {"pool": "batch"} if kind == "named-share" else {}
        if kind == "dedicated":
            more = {"exclusive": draw(st.booleans()), "whole_cores": draw(st.booleans()), "evenly": draw(st.booleans())}
        wishes.append(wish(f"{number}", draw(st.sampled_from([0, 0.5, 1, 2, 3, 5])), kind, **more))
    return wishes


@settings(max_examples=200)
@given(MACHINES, many(), st.randoms())
def test_sets_are_disjoint_between_pools_and_the_same_in_any_order(
    machine: Topology, wishes: list[CpuRequest], chance: Random
) -> None:
    found = assign(machine, machine.all, wishes, {}, {})
    shuffled = list(wishes)
    chance.shuffle(shuffled)
    assert assign(machine, machine.all, shuffled, {}, {}) == found
    sets = {(own.pool, own.cpus.mask if own.pool == "dedicated" else 0): own.cpus for own in found.owned.values()}
    assert sum(map(len, sets.values())) == len(found.cpus)
    assert len(machine.all - found.cpus) >= min(2, len(machine.all)) or not found.owned
    by_uid = {w.uid: w for w in wishes}
    for uid, own in found.owned.items():
        asked = by_uid[uid]
        assert own.cpus <= machine.all
        assert own.cpus
        if asked.kind == "dedicated" and not asked.exclusive:
            assert len(own.cpus) == asked.cpus
        for numa in own.numas:
            assert machine.numas[numa] & own.cpus
    assert found.owned.keys() | {w.uid for w in wishes if w.key in found.problems} == set(by_uid)


@settings(max_examples=200)
@given(MACHINES, many(), many())
def test_whoever_has_cpus_keeps_them_when_others_come_and_go(
    machine: Topology, first: list[CpuRequest], later: list[CpuRequest]
) -> None:
    before = assign(machine, machine.all, first, {}, {})
    held = {uid: own.cpus for uid, own in before.owned.items()}
    stay = [w for w in first if w.kind == "dedicated"]
    newcomers = [
        CpuRequest(w.kind, f"new-{w.uid}", f"new/{w.key}", w.request_cores, 0, w.exclusive, w.evenly, w.whole_cores)
        for w in later
        if w.kind == "dedicated"
    ]
    after = assign(machine, machine.all, [*stay, *newcomers], held, {})
    kept = {w.uid for w in stay} & before.owned.keys()
    assert {uid: after.owned[uid].cpus for uid in kept} == {uid: before.owned[uid].cpus for uid in kept}
