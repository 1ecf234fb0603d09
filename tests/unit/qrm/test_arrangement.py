"""Advised sizes of the pools of single pods: named, bound to a NUMA node, isolated."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.placement.arrangement import Arrangement, Node, arrange
from shared.contracts.advice import PoolAdvice, PoolSize
from shared.contracts.pod import Container, Pod
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape
from shared.errors import Refused

TUTORIAL_NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))
BATCH = {"katalyst.kubewharf.io/cpu_enhancement": json.dumps({"cpuset_pool": "batch"})}
BOUND = {"katalyst.kubewharf.io/memory_enhancement": json.dumps({"numa_binding": "true"})}


def pod(name: str, millis: int = 2000, annotations: dict[str, str] | None = None) -> Pod:
    asked = (Container(name="main", cpu_request_millis=millis),)
    return Pod(uid="0" + "".join(f"{ord(c):x}" for c in name), name=name, containers=asked,
               annotations=annotations or {})  # fmt: skip


def advise(*more: PoolSize, share: int = 6, reclaim: int = 42) -> PoolAdvice:
    pools = (PoolSize(pool="share", cpus=share), PoolSize(pool="reclaim", cpus=reclaim), *more)
    return PoolAdvice(
        node="n1", boot_id="0" * 16, seq=1, sent_at=datetime(2026, 1, 1, tzinfo=UTC), policy="canonical", pools=pools,
        reclaimed_cpu_millis=0, reclaimed_memory_bytes=0,
    )  # fmt: skip


def of_pods(pool: str, cpus: int, numa: int = -1) -> PoolSize:
    return PoolSize(pool=pool, cpus=cpus, numa=numa, of_pods=True)


def placed(advice: PoolAdvice, *pods: Pod, held: dict[str, CpuSet] | None = None) -> Arrangement:
    return arrange(Node(TUTORIAL_NODE, {}, pods, held or {}), advice, "reclaim-first")


def own(what: Arrangement) -> dict[str, tuple[str, int]]:
    return {uid: (own.pool, len(own.cpus)) for uid, own in what.owned.items()}


def sizes(what: Arrangement) -> dict[str, int]:
    return {pool: len(cpus) for pool, cpus in what.pools.items()}


def test_without_advice_a_named_pool_has_what_its_pods_asked_for() -> None:
    a, b = pod("a", 1500, BATCH), pod("b", 1000, BATCH)
    assert own(placed(advise(), a, b)) == {a.uid: ("batch", 3), b.uid: ("batch", 3)}


@pytest.mark.parametrize("millis", [9000, 1000])
def test_a_named_pool_has_the_size_that_is_advised_and_no_more_than_its_pods_ask_for(millis: int) -> None:
    a, b = pod("a", millis, BATCH), pod("b", 1000, BATCH)
    what = placed(advise(of_pods("batch", 8), reclaim=34), a, b)
    size = min(8, millis // 1000 + 1)
    assert own(what) == {a.uid: ("batch", size), b.uid: ("batch", size)}
    assert sizes(what) == {"share": 14 - size, "reclaim": 34}


def test_a_named_pool_may_be_smaller_than_its_pods_ask_for() -> None:
    a, b = pod("a", 8500, BATCH), pod("b", 1000, BATCH)
    what = placed(advise(of_pods("batch", 8), reclaim=34), a, b)
    assert own(what) == {a.uid: ("batch", 8), b.uid: ("batch", 8)}
    assert sizes(what) == {"share": 6, "reclaim": 34}


def test_it_grows_and_shrinks_from_what_it_has() -> None:
    a = pod("a", 9000, BATCH)
    before = placed(advise(of_pods("batch", 8), reclaim=34), a)
    after = placed(advise(of_pods("batch", 6), reclaim=36), a, held=before.held)
    assert after.owned[a.uid].cpus <= before.owned[a.uid].cpus
    assert len(after.owned[a.uid].cpus) == 6


def test_a_bound_pool_has_its_size_on_its_node_once_it_has_one() -> None:
    a, b = pod("a", 12_000, BOUND), pod("b", 8000, BOUND)
    first = placed(advise(), a, b)
    numas = {uid: one.numas for uid, one in first.owned.items()}
    assert own(first) == {a.uid: ("share-NUMA0", 12), b.uid: ("share-NUMA1", 8)}
    sized = advise(of_pods("share-NUMA0", 10, 0), of_pods("share-NUMA1", 6, 1), reclaim=26)
    after = placed(sized, a, b, held=first.held)
    assert own(after) == {a.uid: ("share-NUMA0", 10), b.uid: ("share-NUMA1", 6)}
    assert {uid: one.numas for uid, one in after.owned.items()} == numas


def test_advice_of_more_than_its_node_holds_takes_no_pool_away() -> None:
    a = pod("a", 2000, BOUND)
    first = placed(advise(), a)
    assert own(placed(advise(of_pods("share-NUMA0", 30, 0), reclaim=12), a, held=first.held)) == {
        a.uid: ("share-NUMA0", 2)
    }


def test_an_isolated_pod_leaves_the_share_pool_and_comes_back() -> None:
    a, b = pod("a"), pod("b", 8000)
    what = placed(advise(of_pods("isolation-default.b", 8), reclaim=34), a, b)
    assert own(what) == {b.uid: ("isolation-default.b", 8)}
    assert sizes(what) == {"share": 6, "reclaim": 34}
    assert not what.owned[b.uid].cpus & (what.pools["share"] | what.pools["reclaim"])
    assert own(placed(advise(), a, b, held=what.held)) == {}


def test_a_bound_pod_is_isolated_on_its_node() -> None:
    a, b = pod("a", 8000, BOUND), pod("b", 1000, BOUND)
    first = placed(advise(), a, b)
    isolated = placed(advise(of_pods("isolation-default.a", 8, 0), reclaim=34), a, b, held=first.held)
    assert isolated.owned[a.uid].numas == (0,)
    assert len(isolated.owned[a.uid].cpus) == 8


def test_pools_whose_pods_have_gone_are_passed_over() -> None:
    gone = advise(of_pods("batch", 8), of_pods("isolation-default.x", 4), of_pods("dedicated", 8, 1), reclaim=22)
    what = placed(gone, pod("a"))
    assert own(what) == {}
    assert sizes(what) == {"share": 26, "reclaim": 22}


def test_a_class_pool_cannot_pass_for_one_of_pods() -> None:
    with pytest.raises(Refused, match="'share'"):
        placed(advise(of_pods("share", 8)))


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 40), st.integers(1, 4))
def test_whatever_is_advised_nobody_loses_everything(batch: int, isolated: int, share: int, members: int) -> None:
    """Sizes that do not fit are cut; share and reclaimed pool keep a CPU each."""
    pods = [pod("x"), *(pod(f"b{i}", 1000, BATCH) for i in range(members))]
    parts = [of_pods("batch", min(48, batch)), of_pods("isolation-default.x", min(48, isolated))]
    what = placed(advise(*parts, share=max(1, share), reclaim=4), *pods)
    assert all(what.pools.values())
    assert all(one.cpus for one in what.owned.values())
