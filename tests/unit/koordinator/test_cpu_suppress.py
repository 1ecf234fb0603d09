"""CPU suppression as Koordinator's agent does it: picking, both policies, recovery, a tick."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape
from sublet.reference.koordinator.suppress.best_effort_cpus import MIN_CPUS, BeCandidates, next_cpus
from sublet.reference.koordinator.suppress.picking import picked_cpus
from sublet.reference.koordinator.suppress.quota import MIN_QUOTA_US, UNLIMITED, next_quota_us
from sublet.whatif import answer, kinds

KNOWN = kinds()
PAIRS = {"uniform": {"sockets": 2, "numa_per_socket": 1, "cores_per_numa": 2, "threads": 2, "numbering": "adjacent"}}
"""0-3 in NUMA node 0, 4-7 in node 1, each with two cores."""
EIGHT = Topology.uniform(UniformShape(2, 1, 2, 2, "adjacent"))


def ask(kind: str, **inputs: Any) -> Any:
    return answer(KNOWN, kind, inputs)


def rows(*cpus: tuple[int, int, int]) -> dict[str, Any]:
    """A topology of (CPU, NUMA node, core), one socket."""
    return {"cpus": [[cpu, numa, 0, core, -1] for cpu, numa, core in cpus]}


@pytest.mark.parametrize(
    ("topology", "want", "picked"),
    [
        pytest.param(PAIRS, 0, [], id="none wanted"),
        pytest.param(PAIRS, -3, [], id="less than none wanted"),
        pytest.param(PAIRS, 1, [0], id="one: a thread of the first bucket"),
        pytest.param(PAIRS, 2, [0, 1], id="a core"),
        pytest.param(PAIRS, 3, [0, 1, 4], id="a core, and a thread of the next bucket"),
        pytest.param(PAIRS, 5, [0, 1, 4, 5, 2], id="in turns"),
        pytest.param(PAIRS, 8, [0, 1, 4, 5, 2, 3, 6, 7], id="all"),
        pytest.param(PAIRS, 9, [], id="more than there are"),
        pytest.param(rows((0, 0, 0), (1, 1, 1), (2, 1, 2)), 2, [1, 0], id="the larger bucket first"),
        pytest.param(rows((5, 0, 5), (1, 1, 1)), 2, [1, 5], id="then the smaller CPU"),
        pytest.param(rows((0, 0, 0), (1, 0, 1), (2, 0, 1)), 3, [1, 2, 0], id="cores before threads"),
        pytest.param(rows((0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 3)), 4, [0, 1, 2, 3], id="a core of three threads"),
        pytest.param(
            rows((0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 1, 4)), 5, [0, 1, 2, 3, 4], id="two pairs of a core"
        ),
    ],
)
def test_cpus_are_picked_core_by_core_over_numa_nodes(topology: Any, want: int, picked: list[int]) -> None:
    assert ask("cpuset_pick", topology=topology, want_cpus=want) == {"cpus_in_order": picked}


@given(st.data())
@settings(max_examples=100)
def test_as_many_are_picked_as_are_wanted_each_once(data: st.DataObject) -> None:
    shape = data.draw(
        st.builds(UniformShape, st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3))
    )
    machine = Topology.uniform(shape)
    candidates = CpuSet.of(data.draw(st.sets(st.sampled_from(list(machine.all)))))
    want = data.draw(st.integers(-2, len(machine.cpus) + 2))
    picked = picked_cpus(machine, candidates, want)
    assert len(set(picked)) == len(picked) == (want if 0 < want <= len(candidates) else 0)
    assert CpuSet.of(picked) <= candidates


def adjust(**over: Any) -> Any:
    inputs = {"budget_millicpu": 3000, "topology": PAIRS, "current_be_cpuset": "0-3", "bound_cpus": []} | over
    return ask("cpuset_adjust", **inputs)["be_cpuset"]


@pytest.mark.parametrize(
    ("over", "cpus"),
    [
        pytest.param({}, "0-1,4", id="shrinks at once"),
        pytest.param({"budget_millicpu": 3001}, "0-1,4-5", id="rounded up"),
        pytest.param({"budget_millicpu": -90_000}, "0-1", id="two at least"),
        pytest.param({"budget_millicpu": 8000}, "0-2,4-5", id="a tenth more at most, rounded up"),
        pytest.param({"budget_millicpu": 8000, "current_be_cpuset": ""}, "0", id="from nothing, even below two"),
        pytest.param({"bound_cpus": [{"koord_qos": "LSE", "cpuset": "0-1"}]}, "2,4-5", id="never an LSE pod's"),
        pytest.param({"bound_cpus": [{"koord_qos": "LS", "cpuset": "0-1"}]}, "0-1,4", id="an LS pod's are shared"),
        pytest.param({"bound_cpus": [{"cpuset": "0-1"}]}, "0-1,4", id="a pod's without a class are shared"),
        pytest.param({"node_reserved_cpuset": "0-1"}, "2,4-5", id="never reserved ones"),
        pytest.param({"system_qos_cpuset": "0-1"}, "0-1,4", id="the system shares"),
        pytest.param({"system_qos_cpuset": "0-1", "system_qos_exclusive": True}, "2,4-5", id="the system does not"),
        pytest.param({"bound_cpus": [{"koord_qos": "LSR", "cpuset": "0-3"}]}, "0,4-5", id="1 of 4 LSR, 2 of 4 shared"),
        pytest.param({"bound_cpus": [{"koord_qos": "LSR", "cpuset": "0-7"}]}, "0-1,4", id="all are LSR pods'"),
        pytest.param({"bound_cpus": [{"koord_qos": "LSE", "cpuset": "0-7"}]}, "0-3", id="none left: as before"),
        pytest.param({"bound_cpus": [{"koord_qos": "LSE", "cpuset": "0-5"}]}, "0-3", id="too few left: as before"),
        pytest.param(
            {"bound_cpus": [{"koord_qos": "LSE", "cpuset": "0-5"}, {"koord_qos": "LSR", "cpuset": "6"}]},
            "0-3",
            id="too few in both groups: as before",
        ),
        pytest.param(
            {"bound_cpus": [{"koord_qos": "LSE", "cpuset": "0"}, {"koord_qos": "LSR", "cpuset": "0-1"}]},
            "2,4-5",
            id="LSE goes before LSR",
        ),
        pytest.param({"bound_cpus": [{"koord_qos": "LSE", "cpuset": "64"}]}, "0-1,4", id="CPUs that do not run"),
    ],
)
def test_the_cpus_for_a_budget(over: dict[str, Any], cpus: str) -> None:
    assert adjust(**over) == cpus


@given(st.data())
@settings(max_examples=100)
def test_a_cpuset_is_kept_or_within_its_bounds(data: st.DataObject) -> None:
    some = st.sets(st.integers(0, 7)).map(CpuSet.of)
    lsr, shared, current = data.draw(some), data.draw(some), data.draw(some)
    candidates = BeCandidates(lsr - shared, shared)
    found = next_cpus(EIGHT, candidates, current, data.draw(st.integers(-10_000, 20_000)))
    if found != current:
        assert found <= candidates.all
        assert min(MIN_CPUS, len(current) + 1) <= len(found) <= len(current) + 1


@pytest.mark.parametrize(
    ("static", "new", "root", "container"),
    [(False, "0-1", "0-1", "0-1"), (True, "0-1", "0-7", "0-1"), (False, "", "2-3", "2-3"), (True, "", "0-7", "2-3")],
)
def test_every_level_is_given_its_cpus_and_never_an_empty_set(
    static: bool, new: str, root: str, container: str
) -> None:
    found = ask("cpuset_apply", topology=PAIRS, new_be_cpuset=new, current_be_cpuset="2-3", kubelet_static=static)
    assert found == {"be_root_cpuset": root, "be_pod_cpuset": root, "be_container_cpuset": container}


@pytest.mark.parametrize("status", [None, "using", "recovered"])
def test_recovery_gives_every_candidate_whatever_the_status(status: str | None) -> None:
    bound = [{"koord_qos": "LSE", "cpuset": "7"}, {"koord_qos": "LSR", "cpuset": "0"}]
    found = ask(
        "cpuset_recover",
        topology=PAIRS,
        current_be_cpuset="2",
        bound_cpus=bound,
        node_reserved_cpuset="1",
        system_qos_cpuset="2",
        system_qos_exclusive=True,
        policy_status=status,
    )
    assert found == {"be_cpuset": "0,3-6", "policy_status": "recovered"}


@pytest.mark.parametrize(
    ("capacity", "period", "budget", "current", "quota"),
    [
        pytest.param(80_000, 100_000, 20_000, 1_000_000, 1_800_000, id="a tenth of the node more"),
        pytest.param(80_000, 100_000, 18_000, 1_000_000, 1_800_000, id="exactly a tenth"),
        pytest.param(80_000, 100_000, 20_000, -1, 2_000_000, id="there was none"),
        pytest.param(80_000, 100_000, 1_000, 8_000_000, 100_000, id="shrinks at once"),
        pytest.param(80_000, 100_000, -5_000, 8_000_000, 2000, id="2 ms at least"),
        pytest.param(80_000, 100_000, 0, 3000, 2000, id="2 ms, however small the change"),
        pytest.param(80_000, 100_000, 10_799, 1_000_000, 1_000_000, id="less than a hundredth"),
        pytest.param(80_000, 100_000, 10_800, 1_000_000, 1_080_000, id="a hundredth"),
        pytest.param(80_000, 100_000, 9_201, 1_000_000, 1_000_000, id="less than a hundredth less"),
        pytest.param(80_000, 100_000, 700, -1, -1, id="none counts as the number -1"),
        pytest.param(4_000, 50_000, 2_000, 60_000, 80_000, id="another period"),
        pytest.param(0, 100_000, 5_000, 0, 0, id="a node of nothing cannot grow"),
    ],
)
def test_the_quota_for_a_budget(capacity: int, period: int, budget: int, current: int, quota: int) -> None:
    inputs = {"node_capacity_millicpu": capacity, "period_us": period, "budget_millicpu": budget}
    assert ask("cfs_quota_adjust", **inputs, current_be_quota_us=current) == {"be_quota_us": quota}


@given(st.integers(0, 1 << 30), st.integers(-(1 << 30), 1 << 30), st.integers(UNLIMITED, 1 << 40))
def test_a_quota_never_grows_by_more_than_a_tenth_and_never_falls_below_two_ms(
    capacity: int, budget: int, current: int
) -> None:
    found = next_quota_us(capacity, 100_000, budget, current)
    assert found >= min(MIN_QUOTA_US, current)
    assert current == UNLIMITED or found <= current + capacity * 10 or found == MIN_QUOTA_US


@pytest.mark.parametrize(("status", "quota"), [(None, -1), ("using", -1), ("recovered", 5000)])
def test_a_quota_is_taken_away_once(status: str | None, quota: int) -> None:
    found = ask("cfs_quota_recover", current_be_quota_us=5000, policy_status=status)
    assert found == {"be_quota_us": quota, "policy_status": "recovered"}


def tick(**over: Any) -> Any:
    pods = [
        {"name": "web", "cpu_used_millicpu": 2000, "known": True, "koord_qos": "LS", "kube_qos": "Burstable"},
        {"name": "job", "cpu_used_millicpu": 1000, "known": True, "koord_qos": "BE", "numa_bound": True},
        {"name": "a-job", "cpu_used_millicpu": 0, "known": True, "kube_qos": "BestEffort", "numa_bound": True},
        {"name": "b-web", "cpu_used_millicpu": 0, "known": True, "koord_qos": "LS", "numa_bound": True},
    ]
    strategy = {"enable": True, "policy": "cpuset", "suppress_threshold_percent": 65}
    inputs = {"node_capacity_millicpu": 8000, "node_used_millicpu": 3200, "pods": pods, "topology": PAIRS}
    inputs |= {"strategy": strategy | over.pop("strategy", {})}
    return ask("suppress_tick", **inputs | {"current_be_cpuset": "0-7", "current_be_quota_us": 70_000} | over)


def ticked(quota_us: int, cfs: str | None, cpus: str, cpuset: str | None, *alone: str) -> dict[str, Any]:
    return {
        "be_quota_us": quota_us, "cfs_policy_status": cfs, "be_cpuset": cpus, "cpuset_policy_status": cpuset,
        "left_alone": list(alone),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("over", "wanted"),
    [
        pytest.param({}, ticked(-1, "recovered", "0-1,4", "using"), id="8 x 0.65 - 2 - 0.2 = 3 CPUs"),
        pytest.param(
            {"strategy": {"policy": "cfsQuota"}}, ticked(150_000, "using", "0-7", "recovered"), id="a tenth is 80 ms"
        ),
        pytest.param(
            {"strategy": {"policy": "cfsQuota"}, "current_be_quota_us": -1},
            ticked(300_000, "using", "0-7", "recovered"),
            id="3 CPUs of time",
        ),
        pytest.param({"strategy": {"enable": False}}, ticked(-1, "recovered", "0-7", "recovered"), id="off"),
        pytest.param(
            {"be_cpu_manager_enabled": True}, ticked(-1, "recovered", "0-7", "recovered", "a-job", "job"), id="manager"
        ),
        pytest.param({"node_used_millicpu": None}, ticked(70_000, None, "0-7", None), id="use not known"),
        pytest.param({"node_capacity_millicpu": None}, ticked(70_000, None, "0-7", None), id="node not known"),
        pytest.param(
            {"node_used_millicpu": None, "strategy": {"enable": False}},
            ticked(-1, "recovered", "0-7", "recovered"),
            id="off is off, whatever is known",
        ),
        pytest.param({"strategy": {"suppress_min_percent": 80}}, ticked(-1, "recovered", "0-6", "using"), id="least"),
    ],
)
def test_a_tick(over: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert tick(**over) == wanted
