"""The budget of best-effort work: what the node may be busy with, less what everybody else uses."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.demand.suppress import (
    NodeCpuUse,
    SuppressRule,
    WorkloadUse,
    best_effort_budget_millis,
    percent_of,
)
from sublet.whatif import Malformed, answer, kinds

NODE = NodeCpuUse(20_000, 12_000)
TENANT, BATCH = WorkloadUse(8000, best_effort=False), WorkloadUse(2000, best_effort=True)
WORKLOADS = (TENANT, BATCH)
KNOWN = kinds()

millis = st.integers(0, 1 << 40)
workloads = st.lists(st.builds(WorkloadUse, millis, st.booleans()), max_size=6)
nodes = st.builds(NodeCpuUse, millis, millis, millis)
rules = st.builds(SuppressRule, st.integers(-10, 200), st.none() | st.integers(-10, 200))


@pytest.mark.parametrize(
    ("node", "workloads", "rule", "budget"),
    [
        pytest.param(NODE, WORKLOADS, SuppressRule(70), 4000, id="20 x 0.7 - 8 - 2"),
        pytest.param(NODE, WORKLOADS, SuppressRule(), 3000, id="65 by default"),
        pytest.param(replace(NODE, reserved_millis=3000), WORKLOADS, SuppressRule(70), 3000, id="reserved above used"),
        pytest.param(replace(NODE, reserved_millis=1000), WORKLOADS, SuppressRule(70), 4000, id="reserved below used"),
        pytest.param(replace(NODE, used_millis=5000), WORKLOADS, SuppressRule(70), 6000, id="system never below 0"),
        pytest.param(NODE, (), SuppressRule(70), 2000, id="no workload: all is the system's"),
        pytest.param(NODE, WORKLOADS, SuppressRule(30), -4000, id="negative"),
        pytest.param(NODE, WORKLOADS, SuppressRule(30, 15), 3000, id="at least 15 %"),
        pytest.param(NODE, WORKLOADS, SuppressRule(30, 0), 0, id="at least 0 %"),
        pytest.param(NODE, WORKLOADS, SuppressRule(70, 10), 4000, id="above the least"),
        pytest.param(NodeCpuUse(999, 0), (), SuppressRule(65), 649, id="whole milli-cores"),
        pytest.param(NodeCpuUse(0, 0), (), SuppressRule(), 0, id="a node of nothing"),
    ],
)
def test_a_budget(node: NodeCpuUse, workloads: Any, rule: SuppressRule, budget: int) -> None:
    assert best_effort_budget_millis(node, workloads, rule) == budget


@given(nodes, workloads, rules, millis)
def test_what_others_use_more_is_taken_from_the_budget(
    node: NodeCpuUse, known: list[WorkloadUse], rule: SuppressRule, more: int
) -> None:
    before = best_effort_budget_millis(node, known, rule)
    busier = replace(node, used_millis=node.used_millis + more)
    tenants = best_effort_budget_millis(busier, [*known, WorkloadUse(more, best_effort=False)], rule)
    batch = best_effort_budget_millis(busier, [*known, WorkloadUse(more, best_effort=True)], rule)
    least = before - more
    if rule.min_percent is not None:
        least = max(least, percent_of(node.capacity_millis, rule.min_percent))
    assert least <= tenants <= before
    assert batch == before


@given(nodes, workloads, rules)
def test_the_least_holds_and_the_order_means_nothing(
    node: NodeCpuUse, known: list[WorkloadUse], rule: SuppressRule
) -> None:
    budget = best_effort_budget_millis(node, known, rule)
    assert budget == best_effort_budget_millis(node, known[::-1], rule)
    if rule.min_percent is not None:
        assert budget >= percent_of(node.capacity_millis, rule.min_percent)


def asked(**over: Any) -> dict[str, Any]:
    pods = [
        {"name": "web", "cpu_used_millicpu": 8000, "known": True, "koord_qos": "LS", "kube_qos": "Burstable"},
        {"name": "job", "cpu_used_millicpu": 2000, "known": True, "koord_qos": "BE", "kube_qos": "Burstable"},
    ]
    inputs = {"node_capacity_millicpu": 20000, "node_used_millicpu": 12000, "pods": pods}
    return inputs | {"suppress_threshold_percent": 70} | over


def budget(**over: Any) -> Any:
    return answer(KNOWN, "be_cpu_budget", asked(**over))["be_budget_millicpu"]


def pod(name: str, **over: Any) -> dict[str, Any]:
    return {"name": name, "cpu_used_millicpu": 2000, "known": True} | over


@pytest.mark.parametrize(
    ("pods", "wanted"),
    [
        pytest.param([pod("a", koord_qos="BE")], 4000, id="by label"),
        pytest.param([pod("a", kube_qos="BestEffort")], 4000, id="by Kubernetes class"),
        pytest.param([pod("a", koord_qos="LS", kube_qos="BestEffort")], 4000, id="either is enough"),
        pytest.param([pod("a", koord_qos="BE", kube_qos="Guaranteed")], 4000, id="either is enough, the other way"),
        pytest.param([pod("a")], 2000, id="no class known"),
        pytest.param([pod("a", koord_qos="LSR", kube_qos="Burstable")], 2000, id="a tenant"),
        pytest.param([pod("a", koord_qos="BE", known=False)], 2000, id="a metric without a pod"),
    ],
)
def test_who_counts_as_best_effort(pods: list[dict[str, Any]], wanted: int) -> None:
    assert budget(pods=pods) == wanted


@pytest.mark.parametrize(
    ("over", "wanted"),
    [
        ({"node_allocatable_millicpu": 17000}, 3000),
        ({"node_allocatable_millicpu": None}, 4000),
        ({"node_allocatable_millicpu": 17000, "node_reserved_millicpu": 4000}, 2000),
        ({"node_allocatable_millicpu": 99000}, 4000),
        ({"host_apps": [{"name": "db", "koord_qos": "LS", "cpu_used_millicpu": 1500}]}, 4000),
        ({"host_apps": [{"name": "db", "koord_qos": "BE", "cpu_used_millicpu": 1500}]}, 5500),
        ({"host_apps": [{"name": "db", "cpu_used_millicpu": 3000}]}, 3000),
        ({"suppress_threshold_percent": None}, 3000),
        ({"suppress_threshold_percent": 0, "suppress_min_percent": 5}, 1000),
    ],
)
def test_reserves_and_applications_of_the_host(over: dict[str, Any], wanted: int) -> None:
    assert budget(**over) == wanted


@pytest.mark.parametrize("over", [{"node_used_millicpu": None}, {"pods": None}, {"surplus": 1}])
def test_a_question_that_says_too_little_or_too_much_is_refused(over: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match=next(iter(over))):
        answer(KNOWN, "be_cpu_budget", asked(**over))
