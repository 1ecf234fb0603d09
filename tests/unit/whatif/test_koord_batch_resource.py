"""Koordinator's batch resources: each rule of the formula on one node, and laws over nodes of every kind."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.whatif import Malformed, answer, kinds

KNOWN = kinds()
CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "cases/koord_batch_resource.jsonl").read_text().splitlines()
]
AMOUNTS = st.integers(0, 1 << 40)
POLICIES = ["usage", "maxUsageRequest"]
CLASSES = [None, "koord-prod", "koord-mid", "koord-batch", "koord-free"]


def pod(name: str = "web", **changed: Any) -> dict[str, Any]:
    """A production pod that asks for 20 and 20, of 100 and 100."""
    asked = {"request_cpu_millicpu": 20_000, "request_memory_bytes": 20_000}
    return {"name": name, "koord_qos": "LS", "priority_class": "koord-prod", "phase": "Running"} | asked | changed


def metric(name: str = "web", **changed: Any) -> dict[str, Any]:
    return {"name": name, "cpu_millicpu": 8_000, "memory_bytes": 8_000} | changed


def both(amount: int) -> dict[str, int]:
    return {"cpu_millicpu": amount, "memory_bytes": amount}


def question(**changed: Any) -> dict[str, Any]:
    """A node of 100 cores and 100 kB, of which 10 are used by the system."""
    return {
        "strategy": {"cpu_reclaim_threshold_percent": 70, "memory_reclaim_threshold_percent": 70},
        "node": {"capacity": both(100_000), "allocatable": both(100_000)},
        "node_metric_age_s": 0,
        "system_usage": both(10_000),
        "pods": [pod()],
        "pod_metrics": [metric()],
        "host_apps": [],
    } | changed


def strategy(**changed: Any) -> dict[str, Any]:
    merged: dict[str, Any] = question()["strategy"] | changed
    return merged


def amounts(**changed: Any) -> tuple[Any, Any]:
    found = answer(KNOWN, "batch_allocatable", question(**changed))
    return found["batch_cpu_millicpu"], found["batch_memory_bytes"]


POLICY = {"cpu_calculate_policy": "maxUsageRequest", "memory_calculate_policy": "maxUsageRequest"}


@pytest.mark.parametrize(
    ("changed", "cpu", "memory"),
    [
        pytest.param({}, 52_000, 52_000, id="70 - 10 - 8"),
        pytest.param({"strategy": {}}, 42_000, 47_000, id="60 % and 65 % by default"),
        pytest.param({"strategy": strategy(cpu_reclaim_threshold_percent=0)}, 0, 52_000, id="never below 0"),
        pytest.param({"strategy": strategy(cpu_reclaim_threshold_percent=150)}, 132_000, 52_000, id="oversold"),
        pytest.param({"strategy": strategy(**POLICY)}, 40_000, 40_000, id="the larger of use and request"),
        pytest.param({"strategy": strategy(**POLICY), "pod_metrics": [metric(cpu_millicpu=25_000)]},
                     35_000, 40_000, id="the larger of each resource"),
        pytest.param({"strategy": strategy(memory_calculate_policy="request")}, 52_000, 50_000,
                     id="by request: without system use"),
        pytest.param({"strategy": strategy(memory_calculate_policy="request"), "pod_metrics": [metric("gone")]},
                     32_000, 50_000, id="by request a metric without pod counts nothing"),
        pytest.param({"strategy": strategy(batch_cpu_threshold_percent=30, batch_memory_threshold_percent=60)},
                     30_000, 52_000, id="at most a percent of the capacity"),
        # who counts
        pytest.param({"pod_metrics": []}, 40_000, 40_000, id="without metric by request"),
        pytest.param({"pod_metrics": [], "strategy": strategy(**POLICY)}, 40_000, 40_000,
                     id="without metric by request, whatever the policy"),
        pytest.param({"pods": [pod(koord_qos="LSE")]}, 40_000, 52_000, id="exclusive cores by request"),
        pytest.param({"pods": [pod(koord_qos="LSR")]}, 52_000, 52_000, id="bound cores by use"),
        *(pytest.param({"pods": [pod(priority_class=name)]}, 60_000, 60_000, id=f"{name} is not high")
          for name in ("koord-batch", "koord-free")),
        *(pytest.param({"pods": [pod(priority_class=name, koord_qos="BE")]}, 52_000, 52_000, id=f"{name} is high")
          for name in ("koord-prod", "koord-mid", None)),
        pytest.param({"pods": [pod(phase="Pending")], "pod_metrics": []}, 40_000, 40_000, id="pending pods count"),
        *(pytest.param({"pods": [pod(phase=phase)], "pod_metrics": []}, 60_000, 60_000, id=f"{phase} is over")
          for phase in ("Succeeded", "Failed", "Unknown")),
        pytest.param({"pods": [pod(phase="Failed")]}, 52_000, 52_000, id="a finished pod's metric still counts"),
        pytest.param({"pods": [], "pod_metrics": [metric(priority_class="koord-batch")]}, 60_000, 60_000,
                     id="a metric without pod by its own class"),
        pytest.param({"pods": [], "pod_metrics": [metric(priority_class="koord-mid")]}, 52_000, 52_000,
                     id="a metric of a higher class"),
        pytest.param({"pods": [], "pod_metrics": [metric(), metric()]}, 52_000, 52_000, id="a metric said twice"),
        # the system and what is reserved
        pytest.param({"host_apps": [{"name": "db", "priority_class": "koord-mid"} | both(5_000)]}, 47_000, 47_000,
                     id="host applications above batch"),
        pytest.param({"host_apps": [{"name": "yarn", "priority_class": "koord-batch"} | both(5_000)]}, 52_000, 52_000,
                     id="host applications of batch"),
        pytest.param({"node": {"capacity": both(100_000), "allocatable": both(85_000)}}, 47_000, 47_000,
                     id="kubelet reserves more than the system uses"),
        pytest.param({"node": {"capacity": both(100_000), "allocatable": both(120_000)}}, 52_000, 52_000,
                     id="more allocatable than there is"),
        pytest.param({"node": question()["node"] | {"reservation": {"cpu_millicpu": 15_000}}}, 47_000, 52_000,
                     id="the annotation reserves CPU"),
        pytest.param({"node": question()["node"] | {"reservation": {"reserved_cpus": "0-11",
                                                                    "cpu_millicpu": 50_000}}}, 50_000, 52_000,
                     id="a list of CPUs goes before an amount"),
        pytest.param({"node": question()["node"] | {"reservation": {"reserved_cpus": "", "cpu_millicpu": 15_000}}},
                     47_000, 52_000, id="no list of CPUs"),
        pytest.param({"node": question()["node"] | {"reservation": {"memory_bytes": 15_000}}}, 52_000, 47_000,
                     id="the annotation reserves memory"),
    ],
)  # fmt: skip
def test_what_is_taken_off(changed: dict[str, Any], cpu: int, memory: int) -> None:
    assert amounts(**changed) == (cpu, memory)


@pytest.mark.parametrize(
    ("numas", "first", "second"),
    [
        pytest.param(None, 26_000, 26_000, id="split evenly"),
        pytest.param([0], 22_000, 30_000, id="bound to one"),
        pytest.param([1, 0], 26_000, 26_000, id="bound to both"),
        pytest.param([7], 26_000, 26_000, id="bound to one that is not there"),
        pytest.param([1, 7], 30_000, 22_000, id="one of two is not there"),
    ],
)
def test_a_pod_counts_where_it_is_bound(numas: Any, first: int, second: int) -> None:
    zones = [{"id": numa, "allocatable": both(50_000)} for numa in (0, 1)]
    found = answer(KNOWN, "batch_allocatable", question(pods=[pod(numas=numas)], zones=zones))
    assert [found["zones"][zone]["batch_cpu_millicpu"] for zone in ("0", "1")] == [first, second]
    assert found["batch_cpu_millicpu"] == 52_000


def test_the_first_releases_own_example_comes_out_to_the_byte() -> None:
    case = next(case for case in CASES if case["id"] == "the example of Koordinator's first release")
    found = answer(KNOWN, case["kind"], case["inputs"])
    assert (found["batch_cpu_millicpu"], found["batch_memory_bytes"]) == (4541, 17_236_565_027)


def test_parts_that_do_not_divide_are_rounded_in_favour_of_tenants() -> None:
    zones = [{"id": numa, "allocatable": both(40_000)} for numa in range(3)]
    found = answer(KNOWN, "batch_allocatable", question(pods=[], zones=zones))
    # 28000 - 10000 / 3 - 8000 / 3
    assert {zone["batch_cpu_millicpu"] for zone in found["zones"].values()} == {28_000 - 3_334 - 2_667}


@pytest.mark.parametrize(("age_s", "gone"), [(None, True), (900, False), (900.001, True), (-5, False)])
def test_metrics_that_are_too_old_take_everything_away(age_s: float | None, gone: bool) -> None:
    zones = [{"id": 0, "allocatable": both(50_000)}]
    found = answer(KNOWN, "batch_allocatable", question(node_metric_age_s=age_s, zones=zones))
    assert all((value is None) == gone for value in found.values())
    assert answer(KNOWN, "degrade_needed", {"node_metric_age_s": age_s}) == {"degrade": gone}


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"system_usage": None}, "system_usage"),
        ({"pods": None}, "pods"),
        ({"pod_metrics": None}, "pod_metrics"),
        ({"host_apps": None}, "host_apps"),
        ({"node": None}, "node"),
        ({"strategy": {"cpu_calculate_policy": "request"}}, "cpu_calculate_policy"),
        ({"pods": [pod(phase="running")]}, "phase"),
        ({"zones": [{"id": 0, "allocatable": both(1)}] * 2}, "zones"),
        ({"node": question()["node"] | {"reservation": {"reserved_cpus": "x"}}}, "reserved_cpus"),
    ],
)
def test_a_question_that_cannot_be_asked_names_the_field(changed: dict[str, Any], names: str) -> None:
    with pytest.raises(Malformed) as refusal:
        answer(KNOWN, "batch_allocatable", question(**changed))
    assert refusal.value.reason == "invalid_input"
    assert names in str(refusal.value)


NODES = st.fixed_dictionaries(
    {
        "strategy": st.fixed_dictionaries(
            {
                "cpu_reclaim_threshold_percent": st.integers(0, 100),
                "memory_reclaim_threshold_percent": st.integers(0, 100),
                "cpu_calculate_policy": st.sampled_from(POLICIES),
                "memory_calculate_policy": st.sampled_from([*POLICIES, "request"]),
            }
        ),
        "node": st.builds(
            lambda capacity, kept: {"capacity": both(capacity), "allocatable": both(max(0, capacity - kept))},
            AMOUNTS,
            AMOUNTS,
        ),
        "system_usage": st.builds(both, AMOUNTS),
        "pods": st.lists(
            st.builds(
                lambda name, qos, named, asked: pod(name, koord_qos=qos, priority_class=named, **asked),
                st.sampled_from("abcd"),
                st.sampled_from(["LSE", "LS", "BE", None]),
                st.sampled_from(CLASSES),
                st.fixed_dictionaries({"request_cpu_millicpu": AMOUNTS, "request_memory_bytes": AMOUNTS}),
            ),
            max_size=4,
        ),
        "pod_metrics": st.lists(
            st.builds(lambda name, used: {"name": name} | both(used), st.sampled_from("abcde"), AMOUNTS), max_size=4
        ),
    }
)


@given(NODES)
def test_no_more_is_lent_than_the_reclaimed_part_less_what_the_system_uses(node: dict[str, Any]) -> None:
    cpu, memory = amounts(**node)
    for found, name, kind in ((cpu, "cpu_millicpu", "cpu"), (memory, "memory_bytes", "memory")):
        capacity, percent = node["node"]["capacity"][name], node["strategy"][f"{kind}_reclaim_threshold_percent"]
        reserved = capacity - node["node"]["allocatable"][name]
        assert 0 <= found <= max(0, -(-capacity * percent // 100) - reserved)


@given(NODES, st.integers(0, 3), AMOUNTS)
def test_a_pod_that_uses_more_never_gives_more_to_lend(node: dict[str, Any], place: int, more: int) -> None:
    before, busier = amounts(**node), copy.deepcopy(node)
    for used in busier["pod_metrics"][place : place + 1]:
        used["cpu_millicpu"] += more
        used["memory_bytes"] += more
    # Of one name the last figure counts.
    after = amounts(**busier)
    assert all(now <= then for now, then in zip(after, before, strict=True))
