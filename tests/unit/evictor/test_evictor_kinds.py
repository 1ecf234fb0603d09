"""The evictor's what-if kinds: worked examples, the rules one by one, and laws."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sublet.whatif import kinds

KNOWN = kinds()
AREAS = ("eviction_reclaimed", "eviction_framework", "eviction_memory", "eviction_cpu_load", "eviction_rootfs_network")
KINDS = {name for name, kind in KNOWN.items() if kind.area in AREAS}
FOLDER = Path(__file__).parents[2] / "cases"
CASES = [json.loads(line) for area in AREAS for line in (FOLDER / f"{area}.jsonl").read_text().splitlines()]
CPU = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
MEM = "resource.katalyst.kubewharf.io/reclaimed_memory"
TUTORIAL_CPU = "katalyst.kubewharf.io/reclaimed_millicpu"
TUTORIAL_MEM = "katalyst.kubewharf.io/reclaimed_memory"


def ask(kind: str, inputs: dict[str, Any]) -> dict[str, Any]:
    found = KNOWN[kind]
    return found.function(found.inputs.model_validate_json(json.dumps(inputs))).model_dump(mode="json")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_worked_case_is_answered_as_printed(case: dict[str, Any]) -> None:
    answer = ask(case["kind"], case["inputs"])
    assert {name: answer[name] for name in case["outputs"]} == case["outputs"]


def test_every_kind_has_a_worked_case() -> None:
    assert {case["kind"] for case in CASES} == KINDS
    assert len(KINDS) == 25


def batch(name: str, cpu: int | None = None, mem: int | None = None, **fields: Any) -> dict[str, Any]:
    requests = {k: v for k, v in ((CPU, cpu), (MEM, mem)) if v is not None}
    return {"name": name, "qos": "reclaimed_cores", "requests": requests} | fields


def pressure(**inputs: Any) -> dict[str, Any]:
    base = {"allocatable": {CPU: 1000}, "hard_thresholds": {CPU: 5}, "pods": []}
    return ask("reclaimed_pressure", base | inputs)


TUTORIAL = [batch("reclaimed-large-pod-1", 12_000), batch("reclaimed-large-pod-2", 24_000)]


@pytest.mark.parametrize(
    ("inputs", "want"),
    [
        pytest.param({"allocatable": {}, "pods": TUTORIAL}, {"met": "NOT_MET", "victims": []}, id="nothing offered"),
        pytest.param({"allocatable": {MEM: 0}, "pods": TUTORIAL}, {"met": "NOT_MET"}, id="resource not offered"),
        pytest.param({"hard_thresholds": {MEM: 5}, "pods": TUTORIAL}, {"met": "NOT_MET"}, id="no threshold"),
        pytest.param({"pods": [batch("a", 5000)]}, {"met": "NOT_MET", "scope": None, "observed": None}, id="equal"),
        pytest.param(
            {"pods": [batch("a", 5001)]}, {"met": "HARD_MET", "observed": 5001, "threshold": 5000}, id="above"
        ),
        pytest.param(
            {"allocatable": {CPU: 0}, "pods": [batch("a", 1)]},
            {"met": "HARD_MET", "threshold": 0},
            id="zero is a value",
        ),
        pytest.param(
            {"allocatable": {CPU: 0}, "pods": [batch("a", 1)], "skip_zero_resources": [TUTORIAL_CPU]},
            {"met": "NOT_MET"},
            id="zero is skipped where asked, under either spelling",
        ),
        pytest.param(
            {"allocatable": {CPU: 4000}, "hard_thresholds": {CPU: 10}, "pods": TUTORIAL},
            {"met": "NOT_MET"},
            id="the tutorial's threshold of 10",
        ),
        pytest.param(
            {"allocatable": {TUTORIAL_CPU: 1000}, "hard_thresholds": {CPU: 5}, "pods": TUTORIAL},
            {"met": "HARD_MET", "scope": TUTORIAL_CPU},
            id="scope as spelled in the offer",
        ),
        pytest.param(
            {"pods": [batch("a") | {"requests": {CPU: 3000, TUTORIAL_CPU: 3000}}]},
            {"observed": 6000},
            id="both spellings of a request add up",
        ),
        pytest.param(
            {
                "allocatable": {CPU: 1, TUTORIAL_MEM: 1},
                "hard_thresholds": {TUTORIAL_CPU: 5, MEM: 5},
                "pods": [batch("a", 9, 9)],
            },
            {"scope": TUTORIAL_MEM},
            id="several resources go by name",
        ),
        pytest.param(
            {"pods": [batch("s", 9000) | {"qos": "shared_cores"}]}, {"met": "NOT_MET"}, id="tenants do not count"
        ),
        pytest.param(
            {"pods": [batch("b", 4000), batch("a", 4000), batch("c", 100)], "top_n": 2},
            {"victims": ["a", "b"]},
            id="equal requests go by name",
        ),
        pytest.param(
            {"pods": [batch("a", 9000)], "grace_period_s": 0}, {"deletion_grace_s": None}, id="grace 0 not sent"
        ),
        pytest.param({"pods": [batch("a", 9000)], "grace_period_s": 7}, {"deletion_grace_s": 7}, id="grace sent"),
        pytest.param(
            {
                "hard_thresholds": {CPU: 5},
                "soft_thresholds": {CPU: 1.5},
                "pods": [batch(n, r, soft_evict_notify=True) for n, r in (("a", 400), ("b", 700), ("c", 900))]
                + [batch("quiet", 2000)],
            },
            {"met": "SOFT_MET", "threshold": 1500, "observed": 4000, "victims": ["c"]},
            id="soft: the smallest whose sum stays below the threshold are kept",
        ),
        pytest.param(
            {"soft_thresholds": {CPU: 1.5}, "pods": [batch("a", 100, soft_evict_notify=True), batch("b", 1500)]},
            {"met": "SOFT_MET", "victims": ["a"]},
            id="soft: at least one goes",
        ),
        pytest.param(
            {"soft_thresholds": {CPU: 1.5}, "pods": [batch("b", 1501)]},
            {"met": "SOFT_MET", "victims": []},
            id="soft: nobody takes a notice",
        ),
        pytest.param(
            {
                "hard_thresholds": {MEM: 1},
                "soft_thresholds": {CPU: 1},
                "allocatable": {CPU: 1, MEM: 1},
                "pods": [batch("a", 9, 9)],
            },
            {"met": "HARD_MET", "scope": MEM},
            id="hard beats soft",
        ),
    ],
)
def test_reclaimed_pressure_follows_its_rules(inputs: dict[str, Any], want: dict[str, Any]) -> None:
    answer = pressure(**inputs)
    assert {name: answer[name] for name in want} == want


@given(
    offer=st.integers(0, 5000),
    requests=st.lists(st.integers(0, 9000), max_size=6),
    tutorials=st.lists(st.booleans(), min_size=9, max_size=9),
)
def test_the_spelling_of_a_resource_changes_only_the_scope(
    offer: int, requests: list[int], tutorials: list[bool]
) -> None:
    def inputs(spell: Callable[[int], str]) -> dict[str, Any]:
        pods = [batch(f"p{i}") | {"requests": {spell(3 + i): r}} for i, r in enumerate(requests)]
        return {"allocatable": {spell(0): offer}, "hard_thresholds": {spell(1): 5}, "pods": pods}

    plain, mixed = (
        pressure(**inputs(lambda _: CPU)),
        pressure(**inputs(lambda i: TUTORIAL_CPU if tutorials[i] else CPU)),
    )
    assert plain | {"scope": None} == mixed | {"scope": None}


@given(st.permutations(range(5)), st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_the_order_of_the_pods_means_nothing(order: list[int], requests: list[int]) -> None:
    pods = [batch(f"p{i}", 3000 + r, namespace="ns") for i, r in enumerate(requests)]
    assert pressure(pods=pods, top_n=5) == pressure(pods=[pods[i] for i in order], top_n=5)


EVENT = {"plugin": "memory-pressure-eviction-plugin", "scope": "memory"}
SHORT = "met threshold in scope: memory from plugin: memory-pressure-eviction-plugin"


@pytest.mark.parametrize(
    ("inputs", "want"),
    [
        ({"phase": "created"}, ("Normal", "EvictCreated", f"Successfully create eviction; reason: {SHORT}")),
        (
            {"phase": "succeeded"},
            ("Normal", "EvictSucceeded", f"Evicted pod has been deleted physically; reason: {SHORT}"),
        ),
        (
            {"phase": "failed", "failure": "eviction request did not complete within 45s"},
            ("Warning", "EvictFailed", "Evict failed: eviction request did not complete within 45s"),
        ),
        (
            {"phase": "exceeded_grace"},
            (
                "Warning",
                "EvictExceededGracePeriod",
                "Container runtime did not kill the pod within specified grace period",
            ),
        ),
        (
            {"phase": "created", "style": "long", "threshold": 20000, "observed": 36000.5},
            (
                "Normal",
                "EvictCreated",
                "Successfully create eviction; reason: plugin memory-pressure-eviction-plugin met threshold in scope "
                "memory, target 20000, observed 36000.5",
            ),
        ),
    ],
    ids=lambda value: value.get("phase", "") if isinstance(value, dict) else "",
)
def test_events_are_worded_as_the_tutorial_prints_them(inputs: dict[str, Any], want: tuple[str, ...]) -> None:
    assert tuple(ask("eviction_event", EVENT | inputs).values()) == want


@pytest.mark.parametrize(
    ("inputs", "evictable"),
    [
        pytest.param({"annotations": {}}, True, id="no annotation is shared_cores"),
        pytest.param({"annotations": {"katalyst.kubewharf.io/qos_level": "system_cores"}}, False, id="system_cores"),
        pytest.param({"annotations": {"katalyst.kubewharf.io/qos_level": "nonsense"}}, True, id="unreadable level"),
        pytest.param({"annotations": {"kubernetes.io/config.source": "api"}}, True, id="from the API"),
        pytest.param({"annotations": {"kubernetes.io/config.mirror": ""}}, False, id="mirror"),
        pytest.param({"annotations": {}, "priority": 1_999_999_999}, True, id="below critical"),
        pytest.param({"annotations": {}, "priority": 2_000_000_000}, False, id="critical"),
        pytest.param(
            {"annotations": {"tier": "infra"}, "expanded_selectors": {"system_cores": {"tier": "infra"}}},
            False,
            id="system_cores by selector",
        ),
        pytest.param(
            {"annotations": {"katalyst.kubewharf.io/qos_level": "nonsense"}, "priority": 2_000_000_000},
            False,
            id="an unreadable level does not take other protection away",
        ),
    ],
)
def test_pod_evictable_follows_its_rules(inputs: dict[str, Any], evictable: bool) -> None:
    assert ask("pod_evictable", inputs) == {"evictable": evictable}


GIB = 1 << 30


def memory(steps: list[dict[str, Any]], **inputs: Any) -> list[dict[str, Any]]:
    base = {
        "period_s": 5,
        "watermark_scale_factor": 100,
        "system_total_bytes": 100 * GIB,
        "numa_total_bytes": {"0": 100 * GIB},
        "steps": [
            {"t_s": 5 * i, "system_free_bytes": 50 * GIB, "numa_free_bytes": {"0": 50 * GIB}, "kswapd_steal_pages": 0}
            | s
            for i, s in enumerate(steps)
        ],
    }
    return cast("list[dict[str, Any]]", ask("memory_pressure", base | inputs)["steps"])


def test_a_numa_node_escalates_after_so_many_steps_in_a_row() -> None:
    low: dict[str, Any] = {"numa_free_bytes": {"0": GIB - 1}}
    high: dict[str, Any] = {}
    actions = [s["numa_actions"]["0"] for s in memory([low] * 4 + [high] + [low])]
    assert actions == ["reclaimed"] * 3 + ["all", "noop", "reclaimed"]
    assert memory([low])[0] | {"numa_actions": 0} == {
        "met": "HARD_MET",
        "scope": "memory",
        "condition": None,
        "numa_actions": 0,
        "system_action": "noop",
    }


def test_free_memory_at_the_watermark_is_enough() -> None:
    assert memory([{"system_free_bytes": GIB, "numa_free_bytes": {"0": GIB}}])[0]["met"] == "NOT_MET"
    assert memory([{"system_free_bytes": GIB - 1}])[0]["condition"] == "MemoryPressure/NoSchedule"


def test_kswapd_counts_growth_of_at_least_the_rate_and_acts_after_so_many_steps() -> None:
    steps = [{"kswapd_steal_pages": 10_000 * i} for i in range(6)]
    assert [s["system_action"] for s in memory(steps)] == ["noop"] * 4 + ["all"] * 2
    known = memory(steps, kswapd_steal_pages_before=-10_000)
    assert [s["system_action"] for s in known] == ["noop"] * 3 + ["all"] * 3
    slower = [{"kswapd_steal_pages": 9_999 * i} for i in range(6)]
    assert {s["system_action"] for s in memory(slower)} == {"noop"}


def test_levels_can_be_switched_off() -> None:
    low = {"numa_free_bytes": {"0": 0}, "system_free_bytes": 0}
    assert memory([low], numa_level=False)[0]["numa_actions"] == {"0": "noop"}
    assert memory([low], system_level=False)[0]["system_action"] == "noop"
    assert memory([low], numa_level=False, system_level=False)[0]["met"] == "NOT_MET"


def test_an_unknown_numa_reading_is_no_pressure() -> None:
    assert memory([{"numa_free_bytes": {"0": None}}, {"numa_free_bytes": {}}])[1]["numa_actions"] == {"0": "noop"}


def using(
    name: str, usage: int | None = None, qos: str = "reclaimed_cores", priority: int = 0, **fields: Any
) -> dict[str, Any]:
    return {"name": name, "qos": qos, "priority": priority, "usage_bytes": usage} | fields


def victims(pods: list[dict[str, Any]], system: str = "all", **inputs: Any) -> list[str]:
    asked = {"pods": pods, "system_action": system, "numa_actions": {}} | inputs
    return cast("list[str]", ask("memory_victims", asked)["victims"])


@pytest.mark.parametrize(
    ("pods", "inputs", "want"),
    [
        pytest.param([using("a", 9, "shared_cores"), using("b", 1)], {}, ["b"], id="reclaimed first"),
        pytest.param([using("a", 9, priority=5), using("b", 1, priority=4)], {}, ["b"], id="low priority first"),
        pytest.param([using("a", 1), using("b", 2)], {}, ["b"], id="large use first"),
        pytest.param([using("a", 9), using("b", None)], {}, ["b"], id="unknown use is the largest"),
        pytest.param([using("b", 1), using("a", 1)], {}, ["a"], id="then the name"),
        pytest.param(
            [using("a", 1, namespace="z"), using("b", 1, namespace="y")], {}, ["b"], id="namespace before name"
        ),
        pytest.param([using("a", 1, "shared_cores")], {"system": "reclaimed"}, [], id="reclaimed spares tenants"),
        pytest.param([using("a", 1, "system_cores"), using("b", 1, priority=2_000_000_000)], {}, [], id="never"),
        pytest.param([using("a", 1)], {"system": "noop"}, [], id="noop"),
        pytest.param([using("a", 2), using("b", 1)], {"top_n": 5}, ["a", "b"], id="as many as asked"),
        pytest.param(
            [using("a", 9, priority=5), using("b", 1, priority=4)], {"ranking": ["usage"]}, ["a"], id="other ranking"
        ),
        pytest.param([using("a")], {"cooldown_s": 35, "since_last_eviction_s": 34.9}, [], id="cooling down"),
        pytest.param([using("a")], {"cooldown_s": 35, "since_last_eviction_s": 35}, ["a"], id="cooled down"),
        pytest.param(
            [
                using("a", 5, numa_usage_bytes={"0": 1, "1": 4}),
                using("b", 4, numa_usage_bytes={"0": 4, "1": 0}),
                using("c", 99, numa_usage_bytes={"0": 0, "1": 0}),
            ],
            {"numa_actions": {"1": "reclaimed", "0": "all"}, "system": "all"},
            ["b", "a", "c"],
            id="NUMA nodes ascending, then the system",
        ),
        pytest.param(
            [using("a", 5, numa_usage_bytes={"0": 5})],
            {"numa_actions": {"0": "all", "1": "all"}},
            ["a"],
            id="each pod once",
        ),
        pytest.param(
            [using("a", 5, numa_usage_bytes={"0": 9}), using("b", 9, numa_usage_bytes={"0": 10})],
            {
                "numa_actions": {"0": "all"},
                "system": "noop",
                "top_n": 2,
                "numa_total_bytes": {"0": 100},
                "victim_min_utilization_ratio": 0.1,
            },
            ["b"],
            id="too little on the node",
        ),
    ],
)
def test_memory_victims_follow_their_rules(pods: list[dict[str, Any]], inputs: dict[str, Any], want: list[str]) -> None:
    inputs = dict(inputs)
    assert victims(pods, inputs.pop("system", "all"), **inputs) == want


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("reclaimed_pressure", {"allocatable": {}, "hard_thresholds": {}}),
        ("reclaimed_pressure", {"allocatable": {CPU: "5"}, "hard_thresholds": {}, "pods": []}),
        ("reclaimed_pressure", {"allocatable": {}, "hard_thresholds": {}, "pods": [], "extra": 1}),
        ("memory_victims", {"pods": [], "system_action": "some", "numa_actions": {}}),
        ("eviction_event", {"phase": "gone", "plugin": "p", "scope": "s"}),
        ("pod_evictable", {}),
    ],
    ids=["missing", "wrong type", "unknown field", "unknown action", "unknown phase", "no annotations"],
)
def test_malformed_questions_are_refused(kind: str, inputs: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ask(kind, inputs)
