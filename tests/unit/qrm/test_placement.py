"""From advised sizes to CPUs: the tutorial's listings, small machines, and what is refused whole."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.placement.pools import NO_CPUS, Order, floor_cpus, place, place_floor
from shared.contracts.advice import PoolAdvice, PoolSize
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape
from shared.errors import Refused

TUTORIAL_NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))
TWO_CPUS = Topology.uniform(UniformShape(sockets=1, numa_per_socket=1, cores_per_numa=1, threads=2))


def advise(*, overlap: bool = False, numa: int = -1, **pools: int) -> PoolAdvice:
    return PoolAdvice(
        node="n1",
        boot_id="0123456789abcdef",
        seq=7,
        sent_at=datetime(2026, 1, 1, tzinfo=UTC),
        policy="canonical",
        pools=tuple(PoolSize(pool=pool, cpus=cpus, numa=numa) for pool, cpus in pools.items()),
        overlap=overlap,
        reclaimed_cpu_millis=0,
        reclaimed_memory_bytes=0,
    )


def texts(pools: Any) -> dict[str, str]:
    return {name: str(cpus) for name, cpus in pools.items()}


@pytest.mark.parametrize(
    ("advice", "order", "pools"),
    [
        pytest.param(
            advise(share=6, reclaim=42),
            "reclaim-first",
            {"reclaim": "0-10,12-21,24-34,36-45", "share": "11,22-23,35,46-47"},
            id="the tutorial with one pod",
        ),
        pytest.param(
            advise(share=8, reclaim=40),
            "reclaim-first",
            {"reclaim": "0-9,12-21,24-33,36-45", "share": "10-11,22-23,34-35,46-47"},
            id="the tutorial under load",
        ),
        pytest.param(
            advise(share=4, reclaim=44),
            "reclaim-first",
            {"reclaim": "0-10,12-22,24-34,36-46", "share": "11,23,35,47"},
            id="the tutorial when idle",
        ),
        pytest.param(
            advise(share=6, reclaim=42),
            "share-first",
            {"reclaim": "2-11,13-23,26-35,37-47", "share": "0-1,12,24-25,36"},
            id="today's order",
        ),
        pytest.param(
            advise(share=6, reclaim=38, reserve=4),
            "reclaim-first",
            {"reserve": "0-1,12-13", "reclaim": "2-11,14-22,26-35,38-46", "share": "23-25,36-37,47"},
            id="the reserve goes first, thread by thread",
        ),
        pytest.param(
            advise(share=6, reclaim=10),
            "share-first",
            {"reclaim": "2-4,13-14,26-28,37-38", "share": "0-1,5-12,15-25,29-36,39-47"},
            id="what nobody asked for goes to the tenants",
        ),
        pytest.param(
            advise(share=48, reclaim=0),
            "reclaim-first",
            {"reclaim": "0", "share": "0-47"},
            id="nothing to reclaim still leaves one CPU, shared with the tenants",
        ),
        pytest.param(
            advise(share=48, reclaim=10, overlap=True),
            "share-first",
            {"reclaim": "0-2,12-13,24-26,36-37", "share": "0-47"},
            id="overlap lets tenants run everywhere",
        ),
    ],
)
def test_the_tutorials_machine_is_placed_as_printed(advice: PoolAdvice, order: Order, pools: dict[str, str]) -> None:
    assert texts(place(TUTORIAL_NODE, advice, order).pools) == pools


def test_a_machine_of_two_cpus_shares_one_of_them() -> None:
    placement = place(TWO_CPUS, advise(share=2, reclaim=1, overlap=True))
    assert texts(placement.pools) == {"share": "0-1", "reclaim": "0"}
    assert placement.why.rule == "overlap"
    assert placement.why.numbers["shared"] == 1


@pytest.mark.parametrize(
    ("advice", "reason", "says"),
    [
        pytest.param(advise(share=6, reclaim=43), "too_many_cpus", "need 49, this machine has 48", id="one too many"),
        pytest.param(advise(share=0, reclaim=48), "too_many_cpus", "need 49", id="nothing left for the tenants"),
        pytest.param(advise(share=4, reclaim=4, reserve=48), "too_many_cpus", "need 56", id="all reserved"),
        pytest.param(advise(share=49, reclaim=0, overlap=True), "too_many_cpus", "49 CPUs for pool 'share'", id="huge"),
        pytest.param(advise(share=48, reclaim=1, reserve=48, overlap=True), "too_many_cpus", "need 49", id="all taken"),
        pytest.param(advise(share=6, batch=42), "unknown_pool", "no pool 'batch'; known: reclaim", id="unknown pool"),
        pytest.param(advise(share=6, reclaim=2, numa=0), "numa_bound", "NUMA node 0", id="bound to a node"),
    ],
)
def test_impossible_advice_is_refused_whole_and_says_why(advice: PoolAdvice, reason: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        place(TUTORIAL_NODE, advice)
    assert refused.value.reason == reason


@pytest.mark.parametrize(("cpus", "kept"), [(1, 1), (2, 1), (4, 1), (7, 1), (8, 2), (15, 3), (16, 4), (48, 4)])
def test_the_floor_is_a_quarter_at_least_one_and_at_most_four(cpus: int, kept: int) -> None:
    assert floor_cpus(cpus) == kept


def test_on_the_floor_the_tenants_get_everything_else() -> None:
    placement = place_floor(TUTORIAL_NODE, CpuSet.parse("0-1"), 4)
    assert texts(placement.pools) == {"reserve": "0-1", "reclaim": "2,12,26,36", "share": "3-11,13-25,27-35,37-47"}


def test_on_two_cpus_the_floor_is_shared_with_the_tenants() -> None:
    assert texts(place_floor(TWO_CPUS, CpuSet(), 1).pools) == {"reclaim": "0", "share": "0-1"}


def test_a_reserve_that_outgrew_the_machine_never_empties_a_pool() -> None:
    assert texts(place_floor(TWO_CPUS, TWO_CPUS.all, 1).pools) == {"reclaim": "0", "share": "0-1"}


_MACHINES = st.builds(
    UniformShape,
    sockets=st.integers(1, 2),
    numa_per_socket=st.integers(1, 2),
    cores_per_numa=st.integers(1, 4),
    threads=st.integers(1, 2),
).map(Topology.uniform)


@given(_MACHINES, st.data(), st.sampled_from(("reclaim-first", "share-first")), st.booleans())
def test_pools_are_never_empty_cover_the_machine_and_have_the_advised_size(
    machine: Topology, data: st.DataObject, order: Any, overlap: bool
) -> None:
    sizes = {pool: data.draw(st.integers(0, len(machine.all)), label=pool) for pool in ("share", "reclaim", "reserve")}
    try:
        pools = place(machine, advise(overlap=overlap, **sizes), order).pools
    except Refused:
        return
    reserve = pools.get("reserve", CpuSet())
    assert all(pools.values())
    assert pools["share"] | pools["reclaim"] | reserve == machine.all
    assert len(reserve) == sizes["reserve"]
    assert not reserve & (pools["share"] | pools["reclaim"])
    assert len(pools["reclaim"]) == max(1, sizes["reclaim"])
    if not overlap and sizes["reclaim"]:
        assert not pools["share"] & pools["reclaim"]
    assert len(pools["share"]) >= min(sizes["share"], len(machine.all - reserve))


@given(_MACHINES, st.data())
def test_the_floor_never_empties_a_pool_and_leaves_tenants_half_of_what_is_nobodys_own(
    machine: Topology, data: st.DataObject
) -> None:
    some = st.sets(st.sampled_from(list(machine.all))).map(CpuSet.of)
    reserve, owned = data.draw(some, label="reserve"), data.draw(some, label="owned")
    pools = place_floor(machine, reserve, floor_cpus(len(machine.all)), owned).pools
    share, reclaim = pools["share"], pools["reclaim"]
    assert share
    assert reclaim
    assert len(reclaim) <= floor_cpus(len(machine.all))
    if machine.all - owned:
        assert not (share | reclaim | pools.get("reserve", NO_CPUS)) & owned
    if free := machine.all - reserve - owned:
        assert share | reclaim == free
        assert pools.get("reserve", NO_CPUS) == reserve - owned
        assert 2 * len(share) > len(free) or share == free


@given(_MACHINES, st.data(), st.sampled_from(("reclaim-first", "share-first")))
def test_for_cpus_that_pods_own_the_reclaimed_pool_gives_way_and_not_the_tenants(
    machine: Topology, data: st.DataObject, order: Any
) -> None:
    everybody = len(machine.all)
    owned = CpuSet.of(data.draw(st.sets(st.sampled_from(list(machine.all)), max_size=everybody - 1)))
    size = data.draw(st.integers(1, everybody), label="share")
    advised = data.draw(st.integers(0, everybody - size), label="reclaim")
    pools = place(machine, advise(share=size, reclaim=advised), order, owned=owned).pools
    share, reclaim = pools["share"], pools["reclaim"]
    free = machine.all - owned
    assert reclaim
    assert share | reclaim == free
    assert len(share) >= min(size, len(free))
    assert len(reclaim) <= max(1, advised)
    if share & reclaim:
        assert (share, len(reclaim)) == (free, 1), "what cannot be apart is one CPU, beside tenants on all of them"
    elif len(reclaim) < advised:
        threads = machine.threads_per_core
        assert len(reclaim) % threads == 0 or len(reclaim) < threads, "no core is half in one pool"
        assert len(free) - len(reclaim) - size < threads, "and no more is given than it takes"


@pytest.mark.parametrize(("owned", "share", "reclaim"), [("2-23,26-47", 3, 1), ("1-23,25-47", 1, 1)])
def test_the_last_cpu_beside_the_tenants_is_the_reclaimed_pools_also_where_it_is_half_a_core(
    owned: str, share: int, reclaim: int
) -> None:
    pools = place(TUTORIAL_NODE, advise(share=share, reclaim=8), owned=CpuSet.parse(owned)).pools
    assert (len(pools["share"]), len(pools["reclaim"])) == (share, reclaim)
    assert not pools["share"] & pools["reclaim"]
