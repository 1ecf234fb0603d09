"""LSE and LSR pods: whole CPUs of their own, as their bind policy says, or a word why not."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_placement import advise

from services.qrm.core.placement.arrangement import Arrangement, Node, arrange, arrange_floor
from services.qrm.core.placement.bind_policy import holds
from services.qrm.core.placement.requests import CpuRequest, request_of
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.layout import RECLAIM
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape
from shared.core.pods.cpu_binding import RESOURCE_SPEC, RESOURCE_STATUS, resource_status
from shared.core.pods.koord_qos import QOS_LABEL

NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=4, threads=2))
"""CPUs 0-3 and 8-11 on NUMA node 0, 4-7 and 12-15 on node 1; n and n + 8 are one core."""
MEMORY = {0: 1 << 40, 1: 1 << 40}


def pod(name: str, millis: int = 2000, qos: str = "LSR", status: str = "", priority: int = 0, **spec: str) -> Pod:
    annotations = {RESOURCE_SPEC: json.dumps(spec)} if spec else {}
    if status:
        annotations[RESOURCE_STATUS] = json.dumps({"cpuset": status})
    return Pod(uid=name.encode().hex(), name=name, qos="dedicated_cores", labels={QOS_LABEL: qos}, priority=priority,
               annotations=annotations, containers=(Container(name="main", cpu_request_millis=millis),))  # fmt: skip


def arranged(*pods: Pod, held: dict[str, str] | None = None, topology: Topology = NODE) -> Arrangement:
    known = {name.encode().hex(): CpuSet.parse(cpus) for name, cpus in (held or {}).items()}
    return arrange_floor(Node(topology, MEMORY, pods, known), CpuSet())


def own(found: Arrangement) -> dict[str, str]:
    return {bytes.fromhex(uid).decode(): str(owned.cpus) for uid, owned in found.owned.items()}


@pytest.mark.parametrize("qos", ["LSE", "LSR"])
def test_without_a_policy_a_pod_has_whole_cores_and_batch_work_never_runs_there(qos: str) -> None:
    found = arranged(pod("a", 4000, qos))
    assert (own(found), found.problems, found.otherwise) == ({"a": "0-1,8-9"}, {}, {})
    assert not found.pools[RECLAIM] & CpuSet.parse("0-1,8-9")


@pytest.mark.parametrize("millis", [0, 1500, 2500, 999])
def test_a_pod_without_whole_cpus_runs_as_ls_and_hears_what_to_write(millis: int) -> None:
    found = arranged(pod("a", millis))
    assert own(found) == {}
    assert (
        f"request {millis}m of cpu; write {max(1, -(-millis // 1000))}: until then it is LS"
        in (found.problems["default/a"])
    )


@pytest.mark.parametrize(("priority", "bound"), [(0, True), (9500, True), (20000, True), (7500, False), (5500, False)])
def test_only_pods_of_koord_prod_are_bound(priority: int, bound: bool) -> None:
    found = arranged(pod("a", qos="LSE", priority=priority))
    assert (own(found) != {}, "koord-prod" in found.problems.get("default/a", "koord-prod")) == (bound, True)


def test_spread_cpus_lie_on_cores_of_their_own() -> None:
    found = arranged(pod("a", 4000, requiredCPUBindPolicy="SpreadByPCPUs"))
    assert own(found) == {"a": "0-3"}


def test_a_required_policy_that_no_set_holds_to_leaves_the_pod_in_the_shared_pool_with_a_word() -> None:
    odd = arranged(pod("a", 3000, requiredCPUBindPolicy="FullPCPUs"))
    assert own(odd) == {}
    assert "3 CPUs are no whole cores, which have 2 here; request a multiple of 2" in odd.problems["default/a"]
    wide = arranged(pod("a", 9000, requiredCPUBindPolicy="SpreadByPCPUs"))
    assert own(wide) == {}
    assert "requiredCPUBindPolicy SpreadByPCPUs: 9 CPUs" in wide.problems["default/a"]


def test_a_required_policy_chooses_the_numa_node_that_can_hold_it() -> None:
    """Node 0 has as many free CPUs, but each of them beside another pod's."""
    spread = pod("spread", 4000, preferredCPUBindPolicy="SpreadByPCPUs")
    found = arranged(spread, pod("whole", 4000, requiredCPUBindPolicy="FullPCPUs"), held={"spread": "0-3"})
    assert own(found) == {"spread": "0-3", "whole": "4-5,12-13"}


def test_a_preferred_policy_is_given_up_with_a_word_that_stays() -> None:
    odd = pod("a", 3000, preferredCPUBindPolicy="FullPCPUs")
    found = arranged(odd)
    assert own(found) == {"a": "0-1,8"}
    assert found.problems == {}
    assert "preferredCPUBindPolicy FullPCPUs" in found.otherwise["default/a"]
    assert arranged(odd, held=own(found)).otherwise == found.otherwise


def test_pods_that_want_cores_without_their_like_get_them_while_there_are_some() -> None:
    like: dict[str, Any] = {"preferredCPUBindPolicy": "SpreadByPCPUs", "preferredCPUExclusivePolicy": "PCPULevel"}
    found = arranged(*(pod(name, 3000, **like) for name in "ab"))
    assert own(found) == {"a": "0-2", "b": "4-6"}
    assert found.otherwise == {}
    crowded = arranged(*(pod(name, 3000, **like) for name in "abc"))
    assert "lie beside another such pod's" in crowded.otherwise["default/c"]
    assert set(own(crowded)) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("cpus", "full", "spread"),
    [("", True, True), ("0,8", True, False), ("0-1", False, True), ("0-1,8", False, False), ("0-1,8-9", True, False)],
)
def test_a_policy_holds_for_every_core_of_a_set(cpus: str, full: bool, spread: bool) -> None:
    of = CpuSet.parse(cpus)
    assert (holds(NODE, of, "FullPCPUs"), holds(NODE, of, "SpreadByPCPUs"), holds(NODE, of, None)) == (
        full,
        spread,
        True,
    )


def test_cores_without_their_like_are_asked_for_and_not_whole_numa_nodes() -> None:
    like: dict[str, Any] = {"preferredCPUBindPolicy": "SpreadByPCPUs", "preferredCPUExclusivePolicy": "PCPULevel"}
    found = arranged(*(pod(name, 2000, **like) for name in "abc"))
    assert found.otherwise == {}
    assert len(CpuSet.union(owned.cpus for owned in found.owned.values())) == 6


def test_pods_that_want_a_numa_node_without_their_like_get_it_while_there_is_one() -> None:
    like: dict[str, Any] = {"preferredCPUExclusivePolicy": "NUMANodeLevel"}
    found = arranged(*(pod(name, **like) for name in "abc"))
    assert own(found) == {"a": "0,8", "b": "4,12", "c": "1,9"}
    assert list(found.otherwise) == ["default/a", "default/c"]


def test_a_spec_that_cannot_be_read_gives_nothing() -> None:
    torn = pod("a").model_copy(update={"annotations": {RESOURCE_SPEC: "{"}})
    assert "write a JSON object" in arranged(torn).problems["default/a"]


def test_cpus_that_a_scheduler_has_bound_are_taken_over_where_they_are_free() -> None:
    assert own(arranged(pod("a"), pod("b", status="0,8"))) == {"a": "1,9", "b": "0,8"}
    assert own(arranged(pod("b", status="0,8"), pod("x"), held={"x": "0,8"})) == {"b": "1,9", "x": "0,8"}


def test_a_node_on_which_every_pod_holds_all_cpus_takes_over_what_the_scheduler_has_bound() -> None:
    """As the first look at cgroups of version 1 has it."""
    pods = (pod("a"), pod("b", status="0,8"), pod("c", status="4,12"))
    assert own(arranged(*pods, held=dict.fromkeys("abc", "0-15"))) == {"a": "1,9", "b": "0,8", "c": "4,12"}


def test_a_pod_that_grows_cannot_claim_the_cpus_of_another_by_its_annotation() -> None:
    found = arranged(pod("a-thief", 4000, status="2-3,10-11"), pod("b", 4000), held={"a-thief": "0", "b": "2-3,10-11"})
    assert own(found)["b"] == "2-3,10-11"
    assert not CpuSet.parse(own(found)["a-thief"]) & CpuSet.parse("2-3,10-11")


@pytest.mark.parametrize("status", ["0", "0-2", "14-17"])
def test_cpus_that_a_scheduler_has_bound_and_that_do_not_fit_are_chosen_anew(status: str) -> None:
    assert own(arranged(pod("b", status=status))) == {"b": "0,8"}


def test_cpus_that_a_scheduler_has_bound_do_not_break_what_is_required() -> None:
    assert own(arranged(pod("b", status="0-1", requiredCPUBindPolicy="FullPCPUs"))) == {"b": "0,8"}


def test_cpus_that_a_scheduler_has_bound_leave_two_to_the_others() -> None:
    found = arranged(pod("b", 15_000, status="0-14"))
    assert own(found) == {}
    assert "stay for the other pools" in found.problems["default/b"]


def test_a_katalyst_pod_is_not_bound_by_koordinators_words() -> None:
    words = {RESOURCE_STATUS: resource_status(CpuSet.parse("4,12"), NODE.numas), RESOURCE_SPEC: "{"}
    memory = {"katalyst.kubewharf.io/memory_enhancement": '{"numa_binding": "true"}'}
    plain = pod("a", 1500).model_copy(update={"labels": {}, "annotations": words | memory})
    request = request_of(plain)
    assert isinstance(request, CpuRequest)
    assert (request.bound_cpus, request.binding.refusal, request.cpus) == (CpuSet(), "", 2)


POLICIES = ["FullPCPUs", "SpreadByPCPUs", "Default"]
SPECS = st.fixed_dictionaries({}, optional={
    "requiredCPUBindPolicy": st.sampled_from(POLICIES),
    "preferredCPUBindPolicy": st.sampled_from([*POLICIES, "ConstrainedBurst"]),
    "preferredCPUExclusivePolicy": st.sampled_from(["PCPULevel", "NUMANodeLevel"]),
})  # fmt: skip
STATUSES = st.just("") | st.sets(st.integers(0, 17), min_size=1, max_size=4).map(lambda cpus: str(CpuSet.of(cpus)))
PODS = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["LSE", "LSR"]), STATUSES, SPECS), max_size=6)


@given(PODS, st.integers(0, 1 << 30))
def test_two_pods_never_share_and_a_required_policy_is_never_broken(
    rows: list[tuple[int, str, str, dict[str, Any]]], seed: int
) -> None:
    pods = [pod(f"p{n}", 1000 * cpus, qos, status, **spec) for n, (cpus, qos, status, spec) in enumerate(rows)]
    first = arranged(*pods[: len(pods) // 2])
    Random(seed).shuffle(pods)
    for found in (
        first,
        arrange(Node(NODE, MEMORY, pods, first.held), advise(reserve=0, share=4, reclaim=4), "reclaim-first"),
    ):
        sets = [owned.cpus for owned in found.owned.values()]
        assert len(CpuSet.union(sets)) == sum(map(len, sets))
        assert not any(cpus & pool for cpus in sets for pool in found.pools.values())
        assert len(NODE.all - CpuSet.union(sets)) >= 2
        for one in pods:
            request = request_of(one)
            assert isinstance(request, CpuRequest)
            if one.uid not in found.owned:
                assert one.key in found.problems or found is first
            elif request.binding.required:
                assert holds(NODE, found.owned[one.uid].cpus, request.binding.policy)
            elif not holds(NODE, found.owned[one.uid].cpus, request.binding.policy):
                assert one.key in found.otherwise
    assert first.held.items() <= {uid: owned.cpus for uid, owned in found.owned.items()}.items()
