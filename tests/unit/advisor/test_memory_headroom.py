"""Memory headroom, canonical and NUMA aware, and what each NUMA node may give."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.memory.holders import Holder, open_numas, reclaimed_requests
from services.advisor.core.memory.numa import (
    NumaReserve,
    NumaRoom,
    NumaRules,
    ReclaimLimits,
    kept_ratio,
    numa_headroom_bytes,
    request_per_use,
)
from services.advisor.core.model.figures import Resident
from shared.errors import Refused
from sublet.reference.memory.headroom import (
    GIB,
    BufferRules,
    NodeUse,
    canonical_headroom_bytes,
    claimed_bytes,
    util_buffer_bytes,
)
from sublet.reference.memory.headroom_question import MemoryHeadroomQuestion, memory_headroom
from sublet.reference.memory.provision import NumaFree, provision_bytes

TOTALS = {0: 100, 1: 40}


def shared(rss: int | None = None, cache: int | None = None, asked: int = 0, **fields: Any) -> Holder:
    return Holder("shared_cores", Resident(rss, cache), asked, **fields)


def batch(rss: int | None = None, asked: int = 0, **fields: Any) -> Holder:
    return Holder("reclaimed_cores", Resident(rss), asked, **fields)


def closed(*numas: int) -> Holder:
    return Holder("dedicated_cores", exclusive=True, lends=False, numas=numas or None)


@pytest.mark.parametrize(
    ("holder", "want"),
    [
        pytest.param(shared(100, 50), 165, id="measured, with a tenth"),
        pytest.param(shared(asked=7), 8 * GIB, id="nothing measured: 8 GiB, whatever it asked for"),
        pytest.param(shared(100, asked=7, lends=False), 7, id="it lends nothing: what it asked for"),
        pytest.param(shared(100, lends=False), 0, id="it lends nothing and asked for nothing"),
        pytest.param(Holder("system_cores", Resident(100, 50)), 100, id="the system: resident"),
        pytest.param(batch(100, 100), 0, id="reclaimed"),
        pytest.param(batch(exclusive=True, lends=False), 0, id="reclaimed never takes a node"),
        pytest.param(closed(1), 40, id="a node for itself"),
        pytest.param(closed(1, 0, 1), 140, id="two of them"),
        pytest.param(closed(), 140, id="every one"),
        pytest.param(Holder("dedicated_cores", Resident(100), exclusive=True, numas=(1,)), 110, id="exclusive, lends"),
    ],
)
def test_what_a_container_takes_from_the_node(holder: Holder, want: int) -> None:
    assert claimed_bytes(holder, TOTALS) == want


def test_a_node_of_unknown_size_cannot_be_taken_whole() -> None:
    with pytest.raises(Refused, match="NUMA node 2") as refusal:
        claimed_bytes(closed(2), TOTALS)
    assert refusal.value.reason == "missing_metric"


def test_requests_are_split_over_the_nodes_a_pod_may_use() -> None:
    holders = [batch(asked=10, numas=(0, 1)), batch(asked=6), batch(asked=4, numas=(1, 5)), shared(asked=99)]
    assert reclaimed_requests(holders, (0, 1)) == {0: 8, 1: 10}
    assert open_numas([closed(1), *holders], (2, 1, 0)) == (0, 2)
    assert open_numas([closed()], (0, 1)) == ()
    assert open_numas([Holder("reclaimed_cores", exclusive=True, lends=False)], (0, 1)) == (0, 1)


NODE = NodeUse(64, 256 * GIB, 1000, 500, 300, 10)


@pytest.mark.parametrize(
    ("node", "rules", "tenants", "holders", "want"),
    [
        pytest.param(NODE, BufferRules(static_bytes=0), 0, [], 298, id="free memory above the watermarks"),
        pytest.param(NODE, BufferRules(), 0, [], 298 + 20 * GIB, id="and a fixed amount"),
        pytest.param(NODE, BufferRules(static_bytes=0), 110, [shared(80, 20)], 288, id="tenants may grow"),
        pytest.param(
            NODE, BufferRules(static_bytes=0), 100, [Holder("system_cores", Resident(100, 30, 20))], 148,
            id="the system's cache",
        ),
        pytest.param(NODE, BufferRules(static_bytes=0), 400, [], 0, id="no room"),
        pytest.param(NODE, BufferRules(static_bytes=0, cache_ratio=0.5), 400, [], 100, id="half of the cache"),
        pytest.param(NodeUse(32, 256 * GIB, 1000, 500, 300, 10), BufferRules(static_bytes=0, cache_ratio=0.5), 400, [],
                     0, id="too much memory for its CPUs"),
        pytest.param(NodeUse(128, 256 * GIB, 1000, 500, 300, 10), BufferRules(static_bytes=0, cache_ratio=0.5), 400,
                     [], 0, id="too many CPUs for its memory"),
    ],
)  # fmt: skip
def test_the_buffer_by_utilisation(
    node: NodeUse, rules: BufferRules, tenants: int, holders: list[Holder], want: int
) -> None:
    assert util_buffer_bytes(node, rules, tenants, holders) == pytest.approx(want)


def test_canonical_headroom_is_bounded_by_capacity_without_reserve() -> None:
    holders = [shared(100)]
    assert canonical_headroom_bytes(1000, 50, holders, {}) == 840
    assert canonical_headroom_bytes(1000, 50, holders, {}, (NODE, BufferRules())) == 950
    assert canonical_headroom_bytes(100, 50, [shared(1000)], {}) == 0


@pytest.mark.parametrize(
    ("holders", "per_use", "kept"),
    [
        pytest.param([], 1, 0, id="nobody"),
        pytest.param([batch(asked=10), shared(asked=10)], 1, 0, id="no use known"),
        pytest.param([batch(5, 10)], 2, 0, id="reclaimed pods ask for twice their use"),
        pytest.param([batch(20, 10)], 0.5, 0, id="and use more than they asked for"),
        pytest.param([batch(5)], 1, 0, id="who asks for nothing is not counted"),
        pytest.param([shared(90, asked=100), batch(10, 10)], 1, 0.1, id="a tenth of what tenants asked for"),
        pytest.param([shared(95, asked=100), batch(5, 5)], 1, 0.05, id="or what they have not used"),
        pytest.param([shared(50, asked=100)], 1, 0.2, id="a tenth of what was asked for, of less in use"),
        pytest.param([shared(200, asked=100)], 1, 0, id="tenants use more than they asked for"),
        pytest.param(
            [shared(90, asked=100), shared(asked=10)], 1, 0.1, id="one not measured: it uses what it asked for"
        ),
        pytest.param([batch(5, 10), batch(asked=15)], 1.25, 0, id="a reclaimed one as well"),
    ],
)
def test_asked_and_used(holders: list[Holder], per_use: float, kept: float) -> None:
    assert (request_per_use(holders), kept_ratio(holders, 0.1)) == pytest.approx((per_use, kept))


ROOMS = {0: NumaRoom(1000, 400, 200), 1: NumaRoom(1000, 200, 0)}


@pytest.mark.parametrize(
    ("holders", "rules", "limits", "want"),
    [
        pytest.param([], NumaRules(), None, {0: 320, 1: 160}, id="reserve and watermarks shorten all alike"),
        pytest.param([], NumaRules(cache_ratio=0.5), None, {0: 414, 1: 165}, id="half of the inactive cache"),
        pytest.param([batch(50, 100, numas=(1,))], NumaRules(), None, {0: 640, 1: 420}, id="asked for twice the use"),
        pytest.param(
            [shared(900, asked=1000)], NumaRules(), None, {0: 217, 1: 108}, id="what tenants asked for and not used"
        ),
        pytest.param([], NumaRules(), ReclaimLimits(200), {0: 200, 1: 160}, id="half of the limit each, twice"),
        pytest.param([], NumaRules(max_oversold_ratio=0), ReclaimLimits(1), {0: 320, 1: 160}, id="no such bound"),
        pytest.param(
            [batch(numas=(1,), bound_numa=1)], NumaRules(), ReclaimLimits(100, {1: 20}), {0: 200, 1: 40},
            id="bound pods: their own limit, the others share",
        ),
        pytest.param(
            [batch(numas=(0,), bound_numa=0), batch(numas=(1,), bound_numa=1)], NumaRules(),
            ReclaimLimits(100, {0: 30, 1: 20}), {0: 60, 1: 40}, id="bound pods everywhere",
        ),
        pytest.param(
            [batch(numas=(1,), bound_numa=1)], NumaRules(), ReclaimLimits(100), {0: 200, 1: 160},
            id="a limit that is not known bounds nothing",
        ),
    ],
)  # fmt: skip
def test_numa_aware_headroom(
    holders: list[Holder], rules: NumaRules, limits: ReclaimLimits | None, want: dict[int, int]
) -> None:
    assert numa_headroom_bytes(ROOMS, holders, NumaReserve(100, 100), rules, limits) == pytest.approx(want, abs=1)


sizes = st.integers(0, 1 << 40)
rooms = st.dictionaries(
    st.integers(0, 5),
    sizes.flatmap(lambda total: st.builds(NumaRoom, st.just(total), st.integers(0, total), st.just(0))),
    max_size=4,
)
numas = st.none() | st.lists(st.integers(0, 5), max_size=3).map(tuple)
qos = st.sampled_from(["shared_cores", "dedicated_cores", "reclaimed_cores", "system_cores"])
residents = st.builds(Resident, st.none() | sizes, st.none() | sizes, st.none() | sizes)
holders = st.lists(
    st.builds(Holder, qos, residents, sizes, st.booleans(), numas, st.none() | st.integers(0, 5), st.booleans()),
    max_size=6,
)


@given(rooms, holders, sizes, st.integers(0, 1000), st.floats(0, 1), sizes, st.randoms())
def test_numa_headroom_obeys_its_laws(
    rooms: dict[int, NumaRoom],
    holders: list[Holder],
    reserved: int,
    scale: int,
    cache: float,
    limit: int,
    rng: Random,
) -> None:
    rules = NumaRules(cache_ratio=cache, max_oversold_ratio=1)
    found = numa_headroom_bytes(rooms, holders, NumaReserve(reserved, scale), rules, ReclaimLimits(limit))
    assert list(found) == sorted(rooms)
    assert all(amount >= 0 for amount in found.values())
    unbound = set(found) - {holder.bound_numa for holder in holders if holder.reclaimed}
    assert sum(found[numa] for numa in unbound) <= limit + 1
    shuffled, turned = list(holders), list(rooms.items())
    rng.shuffle(shuffled)
    rng.shuffle(turned)
    again = numa_headroom_bytes(dict(turned), shuffled, NumaReserve(reserved, scale), rules, ReclaimLimits(limit))
    assert again == pytest.approx(found, abs=2, rel=1e-12)


@given(rooms, sizes, st.integers(0, 1000))
def test_without_pods_a_numa_node_never_offers_more_than_is_free_there(
    rooms: dict[int, NumaRoom], reserved: int, scale: int
) -> None:
    found = numa_headroom_bytes(rooms, [], NumaReserve(reserved, scale), NumaRules())
    assert all(found[numa] <= room.free_bytes for numa, room in rooms.items())


@given(rooms, holders, sizes, sizes, st.integers(0, 1000))
def test_a_larger_reserve_never_leaves_more(
    rooms: dict[int, NumaRoom], holders: list[Holder], reserved: int, more: int, scale: int
) -> None:
    before = numa_headroom_bytes(rooms, holders, NumaReserve(reserved, scale), NumaRules())
    after = numa_headroom_bytes(rooms, holders, NumaReserve(reserved + more, scale), NumaRules())
    assert all(after[numa] <= before[numa] for numa in before)


@pytest.mark.parametrize(
    ("free", "holders", "want"),
    [
        pytest.param({0: 500, 1: 300}, [], {0: 430, 1: 230}, id="free without reserve and watermarks"),
        pytest.param({0: 500, 1: 300}, [batch(asked=40)], {0: 450, 1: 250}, id="requests come on top"),
        pytest.param({0: 500, 1: 300}, [batch(asked=40, numas=(1,))], {0: 430, 1: 270}, id="where they are"),
        pytest.param({0: 50, 1: 1000}, [batch(asked=400, numas=(1,))], {0: 0, 1: 1000}, id="from 0 to all of it"),
        pytest.param({}, [batch(asked=400)], {}, id="no node"),
    ],
)
def test_what_a_numa_node_may_give(free: dict[int, int], holders: list[Holder], want: dict[int, int]) -> None:
    assert provision_bytes({n: NumaFree(1000, amount) for n, amount in free.items()}, holders, 100, 100) == want


@given(rooms, holders, sizes, st.integers(0, 1000))
def test_a_numa_node_gives_between_nothing_and_its_memory(
    rooms: dict[int, NumaRoom], holders: list[Holder], reserved: int, scale: int
) -> None:
    nodes = {numa: NumaFree(room.total_bytes, room.free_bytes) for numa, room in rooms.items()}
    found = provision_bytes(nodes, holders, reserved, scale)
    assert list(found) == sorted(rooms)
    assert all(0 <= amount <= nodes[numa].total_bytes for numa, amount in found.items())


def asked(**inputs: Any) -> MemoryHeadroomQuestion:
    base = {"policy": "canonical", "capacity_bytes": 1000, "reserved_bytes": 0, "containers": []}
    return MemoryHeadroomQuestion.model_validate(base | inputs)


AWARE = {"policy": "numa_aware", "numa_nodes": 2, "watermark_scale_factor": 0.0, "config": {"max_oversold_ratio": 0.0}}
ROOM = {"total_bytes": 100, "free_bytes": 50, "inactive_file_bytes": 0}
EXCLUSIVE = {"qos": "dedicated_cores", "numa_exclusive": True, "numas": [1]}


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        pytest.param({"metrics_ready": False}, "not_ready", id="not ready"),
        pytest.param(AWARE | {"numas": {0: ROOM}}, "missing_metric", id="a whole node"),
        pytest.param(AWARE | {"numas": {0: ROOM, 1: ROOM | {"free_bytes": None}}}, "missing_metric", id="free"),
        pytest.param(
            AWARE | {"numas": {0: ROOM, 1: ROOM}, "watermark_scale_factor": None}, "missing_metric", id="the factor"
        ),
    ],
)
def test_what_is_not_known_is_refused_and_never_taken_for_zero(inputs: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused) as refusal:
        memory_headroom(asked(**inputs))
    assert refusal.value.reason == reason


def test_a_node_that_is_taken_whole_gives_nothing_and_need_not_be_known() -> None:
    answer = memory_headroom(asked(**AWARE, numas={0: ROOM}, containers=[EXCLUSIVE | {"reclaimable": False}]))
    assert (answer.headroom_bytes, answer.per_numa_bytes) == (50, {0: 50, 1: 0})


def test_with_reclaim_off_every_exclusive_pod_takes_its_nodes_and_the_others_their_requests() -> None:
    other = {"qos": "shared_cores", "request_bytes": 300, "rss_bytes": 10}
    sizes = {0: ROOM, 1: ROOM | {"total_bytes": 200}}
    answer = memory_headroom(asked(enable_reclaim=False, containers=[EXCLUSIVE, other], numas=sizes))
    assert (answer.headroom_bytes, answer.per_numa_bytes) == (500, None)


def test_numbers_of_a_policy_that_are_missing_are_malformed() -> None:
    with pytest.raises(ValueError, match="numa_nodes"):
        asked(policy="numa_aware")
    with pytest.raises(ValueError, match="machine and node"):
        asked(util_based=True)
