"""Whole rounds on a described node: Katalyst's cases by hand, and laws."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.whatif.cpu.pool_entries import EntriesQuestion, advisor_pool_entries

BIG = {"uniform": {"sockets": 2, "numa_per_socket": 1, "cores_per_numa": 24, "threads": 2, "numbering": "split"}}
"""96 CPUs; NUMA 0 = 0-23,48-71."""
BASE = {"topology": BIG, "reserve_pool": "0,24", "enable_reclaim": True, "pools": {}, "containers": []}


def shared(pod: str, request: float = 4.0, **more: Any) -> dict[str, Any]:
    return {"pod": pod, "container": "c", "qos": "shared_cores", "pool": "share", "request_cores": request,
            "limit_cores": request} | more  # fmt: skip


def dedicated(pod: str, cpuset: str, request: float = 36.0, **more: Any) -> dict[str, Any]:
    return {"pod": pod, "container": "c", "qos": "dedicated_cores", "request_cores": request, "limit_cores": request,
            "numa_binding": True, "numa_exclusive": True, "cpuset": cpuset} | more  # fmt: skip


def entries(**fields: Any) -> tuple[dict[str, dict[int, int]], dict[int, dict[str, int]]]:
    answer = advisor_pool_entries(EntriesQuestion.model_validate(BASE | fields))
    return {pool: sizes for pool, sizes in answer.pool_sizes.items() if pool != "reserve"}, answer.dedicated_overlap


NODE0 = "1-23,48-71"


@pytest.mark.parametrize(
    ("fields", "pools", "overlap"),
    [
        pytest.param({"rule": "head"}, {"reclaim": {-1: 94}}, {}, id="head, nobody: no pool but the reclaimed"),
        pytest.param({}, {"share": {-1: 4}, "reclaim": {-1: 90}}, {}, id="nobody: the share pool stays"),
        pytest.param({"rule": "v0.1.0"}, {"share": {-1: 4}, "reclaim": {-1: 90}}, {}, id="as it did in v0.1.0"),
        pytest.param({"containers": [shared("a", usage_cores=2.0)]}, {"share": {-1: 8}, "reclaim": {-1: 86}}, {},
                     id="2.5 + 4 is 7, made even"),
        pytest.param({"containers": [shared("a", pool=None)], "rule": "head"}, {"reclaim": {-1: 94}}, {},
                     id="a shared container without pool is ignored"),
        pytest.param({"containers": [shared("a", 60)], "pools": {"share": "1-8"}},
                     {"share": {-1: 64}, "reclaim": {-1: 30}}, {}, id="growth knows no step"),
        pytest.param({"containers": [shared("a", 60)], "pools": {"share": "1-8"}, "rule": "head"},
                     {"share": {-1: 18}, "reclaim": {-1: 76}}, {}, id="in head it is 10 CPUs"),
        pytest.param({"containers": [shared("a", 60)], "pools": {"share": "1-8"}, "rule": "head", "updates": 3},
                     {"share": {-1: 38}, "reclaim": {-1: 56}}, {}, id="in every round"),
        pytest.param({"containers": [shared("a", 1)], "pools": {"share": "1-20"}, "updates": 2},
                     {"share": {-1: 16}, "reclaim": {-1: 78}}, {}, id="the first step down is not stamped"),
        pytest.param({"containers": [shared("a", 1)], "pools": {"share": "1-20"}, "updates": 7},
                     {"share": {-1: 16}, "reclaim": {-1: 78}}, {}, id="the next one comes after 30 s"),
        pytest.param({"containers": [shared("a", 1)], "pools": {"share": "1-20"}, "updates": 8},
                     {"share": {-1: 14}, "reclaim": {-1: 80}}, {}, id="and then"),
        pytest.param({"containers": [shared("a", 100), shared("b", 100, pool="batch")]},
                     {"batch": {-1: 45}, "share": {-1: 45}, "reclaim": {-1: 4}}, {}, id="two pools divide the node"),
        pytest.param({"containers": [shared("a", 4)], "enable_reclaim": False},
                     {"share": {-1: 90}, "reclaim": {-1: 4}}, {}, id="without reclaim tenants have it all"),
        pytest.param({"containers": [dedicated("db", NODE0)], "rule": "head"},
                     {"reclaim": {0: 0, -1: 47}}, {0: {"db/c": 2}}, id="an exclusive pod lends slowly"),
        pytest.param({"containers": [dedicated("db", NODE0)], "rule": "head", "updates": 2},
                     {"reclaim": {0: 0, -1: 47}}, {0: {"db/c": 4}}, id="and then more"),
        pytest.param({"containers": [dedicated("db", NODE0)], "rule": "head", "updates": 2,
                      "service_profiles": {"db": {"performance": "poor"}}},
                     {"reclaim": {0: 0, -1: 47}}, {0: {"db/c": 2}}, id="one that does poorly lends no more"),
        pytest.param({"containers": [dedicated("db", NODE0), shared("a", 1)], "rule": "head"},
                     {"share": {-1: 4}, "reclaim": {0: 0, -1: 43}}, {0: {"db/c": 2}},
                     id="the share pool has the other node, and half the reserve"),
        pytest.param({"containers": [dedicated("db", NODE0 + ",25-47,72-95")]},
                     {"reclaim": {0: 0, 1: 0, -1: 0}}, {0: {"db/c": 2}, 1: {"db/c": 2}}, id="no node is left"),
        pytest.param({"containers": [dedicated("db", "1-8", 8, numa_exclusive=False, usage_cores=0.5)]},
                     {"share": {-1: 4}, "db": {0: 8}, "reclaim": {0: 39, -1: 43}}, {0: {"db/c": 2}},
                     id="a dedicated pod that is not alone keeps its CPUs and lends slowly"),
        pytest.param({"containers": [shared("a", pool="share-NUMA1", numa_binding=True, cpuset="25-32")]},
                     {"share": {-1: 4}, "share-NUMA1": {1: 6}, "reclaim": {-1: 43, 1: 41}}, {}, id="bound"),
    ],
)  # fmt: skip
def test_a_described_node(
    fields: dict[str, Any], pools: dict[str, dict[int, int]], overlap: dict[int, dict[str, int]]
) -> None:
    assert entries(**fields) == (dict(sorted(pools.items())), overlap)


NOISY = {"max_resource_ratio": 1.0, "lock_in_threshold": 1, "lock_out_s": 10.0}


def test_a_noisy_pod_gets_cpus_of_its_own_while_it_fits() -> None:
    quiet, noisy = shared("a", 4, nr_runnable=1), shared("b", 4, limit_cores=8, nr_runnable=50)
    pools, _ = entries(containers=[quiet, noisy], isolation=NOISY)
    assert pools == {"isolation-b": {-1: 8}, "share": {-1: 8}, "reclaim": {-1: 78}}


def test_where_isolation_does_not_fit_the_round_is_done_without_it() -> None:
    quiet, noisy = shared("a", 4, nr_runnable=1), shared("b", 4, limit_cores=90, nr_runnable=200)
    pools, _ = entries(containers=[quiet, noisy], isolation=NOISY)
    assert pools == {"share": {-1: 12}, "reclaim": {-1: 82}}


cores = st.none() | st.floats(0, 30)
asked = st.lists(st.tuples(st.sampled_from(["share", "batch"]), st.floats(0, 30), cores), max_size=6)


@given(asked, st.sampled_from([None, "head", "v0.1.0"]), st.booleans(), st.integers(1, 4), st.randoms())
def test_the_order_of_containers_means_nothing_and_every_cpu_is_somewhere_once(
    rows: list[tuple[str, float, float | None]], rule: str | None, reclaim: bool, updates: int, random: Random
) -> None:
    containers = [
        shared(f"p{i}", request, pool=pool, usage_cores=usage) for i, (pool, request, usage) in enumerate(rows)
    ]
    asked = {"rule": rule, "enable_reclaim": reclaim, "updates": updates, "pools": {"share": "1-12"}}
    pools, _ = entries(containers=containers, **asked)
    assert entries(containers=random.sample(containers, len(containers)), **asked)[0] == pools
    total = sum(size for sizes in pools.values() for size in sizes.values())
    assert total == 94 or (not reclaim and "share" not in pools and "batch" not in pools)
    assert pools["reclaim"][-1] >= 4
