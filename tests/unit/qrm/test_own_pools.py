"""Laws of the pools beside the shared one, on any node with any pods: they take no more than their pods ask for."""

import json
import math

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_arrangement import advise

from services.qrm.core.placement.arrangement import Arrangement, Node, arrange, arrange_floor
from services.qrm.core.placement.pools import floor_cpus
from services.qrm.core.placement.requests import request_of
from services.qrm.settings import QrmSettings
from shared.contracts.pod import Container, Pod
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape
from shared.core.pods.qos import DOMAIN
from shared.errors import BadConfig
from shared.settings import check

TUTORIAL_NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))
BOUND = {f"{DOMAIN}memory_enhancement": json.dumps({"numa_binding": "true"})}


def in_pool(name: str) -> dict[str, str]:
    return {f"{DOMAIN}cpu_enhancement": json.dumps({"cpuset_pool": name})}


def pod(number: int, millis: int, annotations: dict[str, str] | None = None) -> Pod:
    asked = (Container(name="main", cpu_request_millis=millis),)
    return Pod(uid=f"{number:04x}", name=f"p{number}", containers=asked, annotations=annotations or {})


def in_force(what: Arrangement) -> dict[str, CpuSet]:
    """CPUs by own pool."""
    return {own.pool: own.cpus for own in what.owned.values()}


def taken(what: Arrangement) -> int:
    return sum(map(len, in_force(what).values()))


MACHINES = st.builds(
    UniformShape,
    sockets=st.integers(1, 2),
    numa_per_socket=st.integers(1, 2),
    cores_per_numa=st.integers(1, 12),
    threads=st.integers(1, 2),
).map(Topology.uniform)
WISHES = st.one_of(st.none(), st.just(BOUND), st.builds(in_pool, st.sampled_from([f"pool{n}" for n in range(40)])))
TINY = st.sampled_from([0, 1, 1, 1, 100, 400, 1000, 1500, 2000, 5000])


@settings(max_examples=1000, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(MACHINES, st.lists(st.tuples(TINY, WISHES), max_size=24), st.booleans())
def test_law_own_pools_have_what_they_ask_for_at_most_and_the_shared_pods_what_they_ask_for_first(
    machine: Topology, asked: list[tuple[int, dict[str, str] | None]], floor: bool
) -> None:
    pods = [pod(number, millis, annotations) for number, (millis, annotations) in enumerate(asked)]
    node = Node(machine, {}, pods)
    everybody = len(machine.all)
    if floor:
        what = arrange_floor(node, CpuSet())
    else:
        reclaim = floor_cpus(everybody)
        what = arrange(
            node, advise(share=max(1, everybody - reclaim), reclaim=min(reclaim, everybody - 1)), "reclaim-first"
        )
    own = [one for one in pods if one.uid in what.owned]
    others = [one for one in pods if one.uid not in what.owned]
    assert taken(what) <= math.ceil(sum(one.cpu_request_millis for one in own) / 1000)
    assert sum(map(len, in_force(what).values())) == len(CpuSet.union(in_force(what).values()))
    if own:
        assert everybody - taken(what) >= min(
            everybody, math.ceil(sum(one.cpu_request_millis for one in others) / 1000)
        )
    wanting = {one.uid for one in pods if request_of(one) is not None}
    assert {one.key for one in others if one.uid in wanting} == what.problems.keys()


@pytest.mark.parametrize("count", [10, 40, 100])
def test_many_tiny_pools_leave_the_honest_pods_every_cpu(count: int) -> None:
    honest = [pod(number, 2000) for number in range(10)]
    tiny = [pod(1000 + number, 1, in_pool(f"x{number}")) for number in range(count)]
    for what in (
        arrange(Node(TUTORIAL_NODE, {}, [*honest, *tiny]), advise(share=44, reclaim=4), "reclaim-first"),
        arrange_floor(Node(TUTORIAL_NODE, {}, [*honest, *tiny]), CpuSet()),
    ):
        assert what.owned == {}
        assert len(what.pools["share"] | what.pools["reclaim"]) == 48
        assert len(what.problems) == count


def test_a_pool_is_had_only_by_a_name_that_an_administrator_gave() -> None:
    pods = [pod(1, 3000, in_pool("batch")), pod(2, 3000, in_pool("mine")), pod(3, 3000, BOUND | in_pool("near"))]
    what = arrange_floor(Node(TUTORIAL_NODE, {}, pods, pools=("batch",)), CpuSet())
    assert {own.pool for own in what.owned.values()} == {"batch"}
    assert what.problems["default/p2"] == (
        "cpuset_pool 'mine' is no pool of this node (batch); an administrator names it in qrm.pools"
    )
    assert "default/p3" in what.problems


@pytest.mark.parametrize(
    ("pools", "in_cluster", "names"),
    [(None, False, None), (None, True, ()), (["batch"], False, ("batch",)), (["batch"], True, ("batch",))],
)
def test_where_nothing_is_said_a_host_has_any_pool_and_a_cluster_none(
    pools: list[str] | None, in_cluster: bool, names: tuple[str, ...] | None
) -> None:
    assert check(QrmSettings, {"pools": pools}, where="qrm").pool_names(in_cluster=in_cluster) == names


@pytest.mark.parametrize("name", ["", "a b", "x" * 64, "-a", "a\n", "../a"])
def test_a_name_that_is_no_word_is_none_wherever_it_comes_from(name: str) -> None:
    what = arrange_floor(Node(TUTORIAL_NODE, {}, [pod(1, 3000, in_pool(name))]), CpuSet())
    assert what.owned == {}
    with pytest.raises(BadConfig):
        check(QrmSettings, {"pools": [name]}, where="qrm")
