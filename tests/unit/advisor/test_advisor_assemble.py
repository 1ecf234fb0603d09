"""The assembler: cases by hand, with and without overlap, and laws over any regions."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.region import RegionType
from services.advisor.core.model.shape import NodeCpus
from services.advisor.core.sizing.assemble import RegionRequirement, assemble, unbound_numas

NODE = NodeCpus({0: 24, 1: 24}, {0: 4, 1: 4}, reserve_pool_cpus=0)
OVERLAP = replace(NODE, overlap=True)
OFF = replace(NODE, reclaim=False)
SHARE = RegionRequirement("share", "share", (0, 1), required_cpus=6, request_cores=4)
BOUND = RegionRequirement("share-NUMA1", "share", (1,), bound=True, required_cpus=8, request_cores=2)
NOISY = RegionRequirement("isolation-a", "isolation", (0, 1), upper_cpus=8, lower_cpus=4)
DEDICATED = RegionRequirement("db", "dedicated", (1,), bound=True, required_cpus=5, request_cores=8)
EXCLUSIVE = replace(DEDICATED, exclusive=True, required_cpus=20)


@pytest.mark.parametrize(
    ("node", "regions", "pools", "shared", "dedicated"),
    [
        pytest.param(NODE, [], {"reclaim": {-1: 48}}, {}, {}, id="nobody"),
        pytest.param(NODE, [SHARE], {"share": {-1: 6}, "reclaim": {-1: 42}}, {}, {}, id="one share pool"),
        pytest.param(
            NODE, [SHARE, BOUND],
            {"share": {-1: 6}, "share-NUMA1": {1: 8}, "reclaim": {-1: 18, 1: 16}}, {}, {}, id="a bound share pool",
        ),
        pytest.param(
            NODE, [SHARE, NOISY], {"share": {-1: 6}, "isolation-a": {-1: 8}, "reclaim": {-1: 34}}, {}, {},
            id="an isolated pod gets its limit",
        ),
        pytest.param(
            NODE, [replace(SHARE, required_cpus=36), NOISY],
            {"share": {-1: 36}, "isolation-a": {-1: 4}, "reclaim": {-1: 8}}, {}, {},
            id="or its request where its limit does not fit",
        ),
        pytest.param(
            NODE, [SHARE, DEDICATED], {"share": {-1: 6}, "db": {1: 8}, "reclaim": {-1: 18, 1: 16}}, {},
            {1: {"db": 3}}, id="a dedicated pod lends what it does not need",
        ),
        pytest.param(
            NODE, [SHARE, replace(DEDICATED, reclaimable=False)],
            {"share": {-1: 6}, "db": {1: 8}, "reclaim": {-1: 18, 1: 16}}, {}, {}, id="unless it may not lend",
        ),
        pytest.param(
            NODE, [EXCLUSIVE], {"reclaim": {-1: 24, 1: 0}}, {}, {1: {"db": 4}}, id="an exclusive pod lends the rest",
        ),
        pytest.param(
            NODE, [replace(EXCLUSIVE, required_cpus=10)], {"reclaim": {-1: 24, 1: 0}}, {}, {1: {"db": 14}},
            id="an exclusive pod that needs little lends much",
        ),
        pytest.param(
            NODE, [replace(EXCLUSIVE, required_cpus=10, reclaimable=False)], {"reclaim": {-1: 24, 1: 0}}, {},
            {1: {"db": 4}}, id="one that may not lend gives the least there is",
        ),
        pytest.param(
            NODE, [replace(SHARE, required_cpus=99)], {"share": {-1: 40}, "reclaim": {-1: 8}}, {}, {},
            id="reclaimed pods keep theirs",
        ),
        pytest.param(OFF, [SHARE], {"share": {-1: 40}, "reclaim": {-1: 8}}, {}, {}, id="without reclaim all is shared"),
        pytest.param(
            OVERLAP, [SHARE], {"share": {-1: 48}, "reclaim": {-1: 0}}, {-1: {"share": 42}}, {},
            id="overlap: the pool is everything and lends what it does not need",
        ),
        pytest.param(
            OVERLAP, [replace(SHARE, required_cpus=46, request_cores=48)], {"share": {-1: 48}, "reclaim": {-1: 0}},
            {-1: {"share": 8}}, {}, id="overlap: reclaimed pods keep theirs inside",
        ),
        pytest.param(
            OVERLAP, [SHARE, NOISY], {"share": {-1: 40}, "isolation-a": {-1: 8}, "reclaim": {-1: 0}},
            {-1: {"share": 34}}, {}, id="overlap: never with an isolated pod",
        ),
        pytest.param(
            replace(OVERLAP, reclaim=False), [SHARE], {"share": {-1: 48}, "reclaim": {-1: 0}}, {-1: {"share": 8}}, {},
            id="overlap without reclaim: only what is kept",
        ),
    ],
)  # fmt: skip
def test_regions_are_assembled(
    node: NodeCpus,
    regions: list[RegionRequirement],
    pools: dict[str, dict[int, int]],
    shared: dict[int, dict[str, int]],
    dedicated: dict[int, dict[str, int]],
) -> None:
    done = assemble(node, regions)
    assert done.pools == dict(sorted(({"reserve": {-1: 0}} | pools).items()))
    assert (done.reclaim_overlap, done.dedicated_overlap) == (shared, dedicated)


def test_pools_that_want_too_much_are_throttled_by_name() -> None:
    crowded = [replace(SHARE, required_cpus=30), replace(SHARE, pool="batch", required_cpus=30)]
    done = assemble(NODE, crowded)
    assert done.throttled == ("batch", "share")
    assert (done.size_of("batch"), done.size_of("share")) == (20, 20)


numas = st.integers(1, 4)
TYPES: list[RegionType] = ["share", "isolation", "dedicated"]


@st.composite
def situations(draw: st.DrawFn) -> tuple[NodeCpus, list[RegionRequirement]]:
    count = draw(numas)
    available = {n: draw(st.integers(8, 48)) for n in range(count)}
    kept = {n: draw(st.integers(1, 4)) for n in range(count)}
    node = NodeCpus(available, kept, draw(st.integers(0, 4)), draw(st.booleans()), draw(st.booleans()))
    regions = []
    for index in range(draw(st.integers(0, 6))):
        bound = draw(st.booleans())
        type_ = draw(st.sampled_from(TYPES))
        where = (draw(st.integers(0, count - 1)),) if bound else ()
        lower = draw(st.integers(0, 6))
        regions.append(
            RegionRequirement(
                f"pool{index}",
                type_,
                where,
                bound,
                draw(st.integers(0, 64)),
                draw(st.floats(0, 16)),
                lower + draw(st.integers(0, 6)),
                lower,
                reclaimable=draw(st.booleans()),
            )
        )
    return node, regions


@given(situations(), st.randoms())
def test_the_order_of_the_regions_means_nothing(
    situation: tuple[NodeCpus, list[RegionRequirement]], random: Random
) -> None:
    node, regions = situation
    assert assemble(node, random.sample(regions, len(regions))) == assemble(node, regions)


@given(situations())
def test_without_overlap_no_cpu_is_given_away_twice(situation: tuple[NodeCpus, list[RegionRequirement]]) -> None:
    node, regions = situation
    node = replace(node, overlap=False)
    done = assemble(node, regions)
    for key in done.pools["reclaim"]:
        here = unbound_numas(node, regions) if key == -1 else (key,)
        available, kept = (sum(m[n] for n in here) for m in (node.available, node.kept_for_reclaim))
        sizes = {pool: by_numa[key] for pool, by_numa in done.pools.items() if key in by_numa and pool != "reserve"}
        if len(sizes) - 1 <= available - kept:  # else every pool runs on all that there is
            assert sum(sizes.values()) <= available


@given(situations())
def test_reclaimed_pods_always_keep_theirs(situation: tuple[NodeCpus, list[RegionRequirement]]) -> None:
    node, regions = situation
    done = assemble(node, regions)
    for key, size in done.pools["reclaim"].items():
        here = unbound_numas(node, regions) if key == -1 else (key,)
        available, kept = (sum(m[n] for n in here) for m in (node.available, node.kept_for_reclaim))
        lent = sum(done.reclaim_overlap.get(key, {}).values()) + sum(done.dedicated_overlap.get(key, {}).values())
        if sum(1 for pool, by_numa in done.pools.items() if key in by_numa and "pool" in pool) <= available - kept:
            assert size + lent >= kept
