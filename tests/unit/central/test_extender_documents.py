"""Objects and messages as the extender keeps them, and what it says of victims."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.scheduling.cluster.node_documents import (
    REFUSES,
    measured_node,
    offering_cnr,
    said_by_node,
    schedulable_node,
)
from services.central.core.scheduling.cluster.victims import PreemptRequest
from services.central.core.scheduling.load.expected_use import UsedByPod
from shared.contracts.cluster.offer import NodeOffer, NumaAllocation, OfferedNuma, PodUses, ResourceAmounts, WindowUsage
from shared.contracts.pod import (
    BATCH_CPU,
    BATCH_MEMORY,
    RECLAIMED_CPU,
    RECLAIMED_MEMORY,
    TUTORIAL_RECLAIMED_CPU,
    TUTORIAL_RECLAIMED_MEMORY,
)

Document = dict[str, Any]
OFFER = {RECLAIMED_CPU: 44_000, RECLAIMED_MEMORY: 1 << 30}


@pytest.mark.parametrize(
    ("given", "offered"),
    [
        ({RECLAIMED_CPU: "44k", RECLAIMED_MEMORY: "1Gi"}, OFFER),
        ({TUTORIAL_RECLAIMED_CPU: "44k", TUTORIAL_RECLAIMED_MEMORY: "1Gi"}, OFFER),
        ({BATCH_CPU: "44k", BATCH_MEMORY: "1Gi"}, OFFER),
        ({RECLAIMED_CPU: "many"}, None),
        ({}, None),
    ],
)
def test_a_node_says_what_it_has_under_any_name(given: dict[str, str], offered: dict[str, int] | None) -> None:
    status = {"allocatable": {"cpu": "8", "memory": "2Gi", "pods": "110", **given}}
    found = schedulable_node({"metadata": {"name": "n1", "annotations": {REFUSES: "cpu"}}, "status": status})
    assert (found.allocatable, found.offered) == ({"cpu": 8000, "memory": 2 << 30}, offered)
    assert found.refuses == "cpu"


def test_a_cnr_is_read_in_either_spelling() -> None:
    taint = {"key": "k", "effect": "NoSchedule", "qosLevel": "reclaimed_cores"}
    newer: Document = {"resources": {"allocatable": {RECLAIMED_CPU: "44k", RECLAIMED_MEMORY: "1Gi"}}}
    older: Document = {"resourceAllocatable": {TUTORIAL_RECLAIMED_CPU: "44k", TUTORIAL_RECLAIMED_MEMORY: "1Gi"}}
    for status in (newer, older):
        found = offering_cnr({"metadata": {"name": "n1"}, "spec": {"taints": [taint]}, "status": status})
        assert found.offered == OFFER
        assert found.taints[0].qos_level == "reclaimed_cores"
    assert offering_cnr({"metadata": {"name": "n1"}}).offered is None


def test_a_node_metric_is_read_with_windows_and_pods() -> None:
    def used(cpu: str) -> Document:
        return {"resources": {"cpu": cpu, "memory": "1Ki"}}

    node = {"nodeUsage": used("4"), "aggregatedNodeUsages": [{"duration": "5m0s", "usage": {"p95": used("6")}}]}
    pods = [{"namespace": "team", "name": "a", "priority": "koord-prod", "podUsage": used("1500m")}]
    status = {"updateTime": "2026-11-23T10:00:00Z", "nodeMetric": node, "podsMetric": pods}
    found = measured_node({"metadata": {"name": "n1"}, "status": status})
    assert found is not None
    assert found.load.measured_s == 1795428000
    assert found.load.usage == {"cpu": 4000, "memory": 1024}
    assert found.load.aggregated == {("p95", 300.0): {"cpu": 6000, "memory": 1024}}
    assert found.load.pods == {"team/a": UsedByPod({"cpu": 1500, "memory": 1024}, prod=True)}
    assert measured_node({"metadata": {"name": "n1"}, "status": {}}) is None


def offer(**fields: Any) -> NodeOffer:
    return NodeOffer(node="n1", boot_id="0" * 16, seq=1, sent_at=datetime(2026, 1, 1, tzinfo=UTC), **fields)


def test_a_message_is_as_old_as_it_says_by_our_clock() -> None:
    pods = PodUses(uids=("a1",), namespaces=("team",), names=("a",), qos=("shared_cores",), prod=(True,),
                   cpu_millis=(1500,), memory_bytes=(None,))  # fmt: skip
    window = WindowUsage(window_s=300, used={"p95": ResourceAmounts(cpu_millis=6000)})
    message = offer(reclaimed=ResourceAmounts(cpu_millis=44_000, memory_bytes=1 << 30), usage_age_s=2.5,
                    used=ResourceAmounts(cpu_millis=4000), windows=(window,), window_s=30, pods=pods)  # fmt: skip
    found = said_by_node(message, heard_s=7.0, wall_s=1000.0)
    assert (found.heard_s, found.offered) == (7.0, OFFER)
    assert found.load is not None
    assert (found.load.measured_s, found.load.interval_s) == (997.5, 30)
    assert found.load.usage == {"cpu": 4000}
    assert found.load.aggregated == {("p95", 300.0): {"cpu": 6000}}
    assert found.load.pods == {"team/a": UsedByPod({"cpu": 1500}, prod=True)}


def test_what_a_node_does_not_know_is_not_zero() -> None:
    found = said_by_node(offer(used=ResourceAmounts(cpu_millis=4000)), 0, 0)
    assert (found.offered, found.load) == (None, None)


def test_numa_nodes_are_as_the_message_says_less_what_dedicated_pods_have_there() -> None:
    held = [NumaAllocation(uid="a1", dedicated=True, requests=ResourceAmounts(cpu_millis=3000)),
            NumaAllocation(uid="b1", requests=ResourceAmounts(cpu_millis=1000))]  # fmt: skip
    amounts = ResourceAmounts(cpu_millis=8000, memory_bytes=64)
    numa = OfferedNuma(numa=1, socket=1, capacity=amounts, allocatable=amounts, allocations=tuple(held))
    found = said_by_node(offer(topology_policy="numeric_container", numas=(numa,)), 0, 0)
    assert found.machine is not None
    assert found.machine.topology_policy == "numeric_container"
    assert found.machine.numas[0].available == {"cpu": 5000, "memory": 64}
    assert found.bound == {"a1", "b1"}
    assert said_by_node(offer(numas=(numa,)), 0, 0).machine is None


def meta(*uids: str) -> Document:
    return {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 1}


@pytest.mark.parametrize("key", ["NodeNameToMetaVictims", "nodenametometavictims"])
def test_victims_stay_as_they_are_and_nodes_where_they_do_not_help_go(key: str) -> None:
    found = PreemptRequest.read({"Pod": {}, key: {"n1": meta("a", "b"), "n2": meta("c"), "n3": meta()}})
    assert found is not None
    reply = found.reply({"n1": True, "n2": False})
    assert reply == {"NodeNameToMetaVictims": {"n1": meta("a", "b"), "n3": meta()}}


def test_whole_pods_are_victims_by_their_uids() -> None:
    rows = {"n1": {"Pods": [{"metadata": {"uid": "a"}}], "NumPDBViolations": 0}}
    found = PreemptRequest.read({"Pod": {}, "NodeNameToVictims": rows})
    assert found is not None
    assert found.victims == {"n1": ("a",)}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["Pods", "UID", "x"]), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["Pod", "NodeNameToMetaVictims", "NodeNameToVictims"]), JSON) | JSON)
def test_whatever_is_sent_is_read_or_is_no_question(body: object) -> None:
    found = PreemptRequest.read(body)
    if found is not None:
        assert found.reply({})["NodeNameToMetaVictims"].keys() == found.victims.keys()
