"""Zones, the arbiter's round, soft victims, outcomes and killers: the rules one by one, and laws."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kind_door import ask, says

from shared.errors import Refused

CPU, TUTORIAL_CPU = "resource.katalyst.kubewharf.io/reclaimed_millicpu", "katalyst.kubewharf.io/reclaimed_millicpu"
MEM = "resource.katalyst.kubewharf.io/reclaimed_memory"


def zone(
    name: str,
    allocatable: dict[str, int],
    *shares: tuple[str, dict[str, int]],
    type: str = "Numa",  # noqa: A002
) -> dict[str, Any]:
    allocations = [{"pod": pod, "requests": requests} for pod, requests in shares]
    return {"type": type, "id": name, "allocatable": allocatable, "allocations": allocations}


def batch(name: str, cpu: int, numa: int | None = None, **fields: Any) -> dict[str, Any]:
    return {"name": name, "qos": "reclaimed_cores", "requests": {CPU: cpu}, "numa_bind_result": numa} | fields


def zones(*of: dict[str, Any], pods: list[dict[str, Any]], **inputs: Any) -> dict[str, Any]:
    return ask("zone_resource_pressure", zones=list(of), pods=pods, **{"hard_thresholds": {CPU: 5}} | inputs)


@pytest.mark.parametrize(
    ("of", "inputs", "want"),
    [
        pytest.param([zone("0", {CPU: 1})], {"pods": [batch("a", 5, 0)]}, {"met": "NOT_MET"}, id="equal"),
        pytest.param(
            [zone("0", {CPU: 1})],
            {"pods": [batch("a", 6, 0)]},
            {"met": "HARD_MET", "scope": f"zone0|{CPU}", "observed": 6, "threshold": 5, "victims": ["a"]},
            id="above",
        ),
        pytest.param([zone("0", {CPU: 1})], {"pods": [batch("a", 6, 1)]}, {"met": "NOT_MET"}, id="bound elsewhere"),
        pytest.param([zone("0", {CPU: 1})], {"pods": [batch("a", 6)]}, {"met": "NOT_MET"}, id="bound nowhere"),
        pytest.param(
            [zone("0", {CPU: 1}, ("a", {CPU: 4})), zone("1", {CPU: 1})],
            {"pods": [batch("a", 9, 0)]},
            {"met": "NOT_MET"},
            id="an allocation counts before the request",
        ),
        pytest.param(
            [zone("0", {CPU: 1}, ("a", {CPU: 3}), ("b", {TUTORIAL_CPU: 4}))],
            {"pods": [batch("a", 0), batch("b", 0)], "top_n": 5},
            {"met": "HARD_MET", "observed": 7, "victims": ["b", "a"]},
            id="allocations in either spelling, the largest first",
        ),
        pytest.param(
            [zone("0", {CPU: 1}, ("web", {CPU: 9}))],
            {"pods": [batch("web", 9, 0, qos="shared_cores")]},
            {"met": "NOT_MET"},
            id="tenants do not count",
        ),
        pytest.param(
            [zone("0", {CPU: 1}), zone("1", {})],
            {"pods": [batch("a", 6, 0)]},
            {"met": "NOT_MET"},
            id="a zone without any report",
        ),
        pytest.param(
            [zone("0", {CPU: 0})],
            {"pods": [batch("a", 1, 0)], "skip_zero_resources": [TUTORIAL_CPU]},
            {"met": "NOT_MET"},
            id="zero is skipped where asked",
        ),
        pytest.param([zone("0", {CPU: 0})], {"pods": [batch("a", 1, 0)]}, {"threshold": 0}, id="zero is a value"),
        pytest.param(
            [zone("10", {CPU: 1}), zone("2", {CPU: 1})],
            {"pods": [batch("a", 6, 10), batch("b", 6, 2)]},
            {"scope": f"zone2|{CPU}", "victims": ["b"]},
            id="zones go by number",
        ),
        pytest.param(
            [zone("0", {TUTORIAL_CPU: 1})],
            {"pods": [batch("a", 6, 0)]},
            {"scope": f"zone0|{TUTORIAL_CPU}"},
            id="as spelled",
        ),
        pytest.param(
            [zone("0", {"gpu": 1}, ("a", {"gpu": 1}), type="GPU")],
            {"pods": [batch("a", 0, 0)], "hard_thresholds": {"gpu": 0.5}},
            {"met": "HARD_MET", "scope": "zone0|gpu"},
            id="a device by its allocations",
        ),
        pytest.param(
            [zone("0", {CPU: 1}, type="GPU")], {"pods": [batch("a", 6, 0)]}, {"met": "NOT_MET"}, id="no NUMA node"
        ),
        pytest.param(
            [zone("0", {CPU: 1})],
            {"pods": [batch("b", 6, 0), batch("a", 6, 0)]},
            {"victims": ["a"]},
            id="equal ones by name",
        ),
    ],
)
def test_zone_resource_pressure_follows_its_rules(
    of: list[dict[str, Any]], inputs: dict[str, Any], want: dict[str, Any]
) -> None:
    assert says(zones(*of, **inputs), **want)


@given(order=st.permutations(range(4)), requests=st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_the_order_of_zones_and_pods_means_nothing(order: list[int], requests: list[int]) -> None:
    of = [zone(str(i), {CPU: 1, MEM: 1}) for i in range(4)]
    pods = [batch(f"p{i}", request, i % 2) for i, request in enumerate(requests)]
    mixed = zones(*(of[i] for i in order), pods=[pods[i] for i in order], top_n=4)
    assert mixed == zones(*of, pods=pods, top_n=4)


def plugin(name: str, met: str = "NOT_MET", **fields: Any) -> dict[str, Any]:
    return {"name": name, "met": met} | fields


def named(*pods: tuple[str, bool]) -> list[dict[str, Any]]:
    return [{"pod": pod, "force": force} for pod, force in pods]


CONDITION = {"name": "Full", "type": "NODE", "effects": ["NoSchedule"]}


@pytest.mark.parametrize(
    ("plugins", "dry_run", "want"),
    [
        pytest.param([], [], ([], [], []), id="nobody says anything"),
        pytest.param([plugin("a", top_pods=["p"], condition=CONDITION)], [], ([], [], []), id="not met"),
        pytest.param(
            [plugin("a", evict_pods=named(("p", False), ("q", True)))], [], (["p"], ["q"], []), id="named by itself"
        ),
        pytest.param([plugin("a", "HARD_MET", top_pods=["p"])], [], ([], ["p"], []), id="hard"),
        pytest.param([plugin("a", "SOFT_MET", top_pods=["p"])], [], (["p"], [], []), id="soft"),
        pytest.param(
            [plugin("a", "HARD_MET", top_pods=["p"], grace_period_s=5, condition=CONDITION)],
            [],
            ([], [], ["Full"]),
            id="a grace that has just begun",
        ),
        pytest.param([plugin("a", "HARD_MET", top_pods=["p"], grace_period_s=0)], [], ([], ["p"], []), id="no grace"),
        pytest.param(
            [plugin("a", "HARD_MET", top_pods=["p"], condition=CONDITION), plugin("b", "SOFT_MET", top_pods=["q"])],
            ["a"],
            (["q"], [], []),
            id="one on dry run",
        ),
        pytest.param(
            [plugin("a", "HARD_MET", top_pods=["p"]), plugin("b", evict_pods=named(("q", True)))],
            ["*"],
            ([], [], []),
            id="all on dry run",
        ),
        pytest.param(
            [plugin("b", "HARD_MET", top_pods=["q", "p"]), plugin("a", "HARD_MET", top_pods=["q"])],
            [],
            ([], ["p", "q"], []),
            id="nobody twice, by name",
        ),
        pytest.param([plugin("a", "HARD_MET", top_pods=["gone"])], [], ([], [], []), id="no longer active"),
    ],
)
def test_eviction_round_follows_its_rules(
    plugins: list[dict[str, Any]], dry_run: list[str], want: tuple[list[str], ...]
) -> None:
    answer = ask("eviction_round", active_pods=["p", "q", "r"], plugins=plugins, dry_run=dry_run)
    assert (answer["soft"], answer["force"], answer["conditions"]) == want


answers = st.builds(
    plugin,
    name=st.sampled_from("abcd"),
    met=st.sampled_from(["NOT_MET", "SOFT_MET", "HARD_MET"]),
    top_pods=st.lists(st.sampled_from("pqrs"), max_size=3),
    evict_pods=st.lists(st.builds(lambda p, f: {"pod": p, "force": f}, st.sampled_from("pqrs"), st.booleans())),
    condition=st.sampled_from([None, CONDITION]),
)


@given(
    plugins=st.lists(answers, max_size=4, unique_by=lambda p: p["name"]),
    dry=st.lists(st.sampled_from("abcd")),
    order=st.randoms(use_true_random=False),
)
def test_a_plugin_on_dry_run_is_as_if_it_were_not_there_and_order_means_nothing(
    plugins: list[dict[str, Any]], dry: list[str], order: Random
) -> None:
    left = [p for p in plugins if p["name"] not in dry]
    mixed = list(plugins)
    order.shuffle(mixed)
    with_dry = ask("eviction_round", active_pods=list("pqr"), plugins=mixed, dry_run=dry)
    assert with_dry == ask("eviction_round", active_pods=list("pqr"), plugins=left, dry_run=[])
    assert {*with_dry["soft"], *with_dry["force"]} <= set("pqr")


def wish(name: str, qos: str = "reclaimed_cores", priority: int | None = 0, scope: str = "cpu") -> dict[str, Any]:
    return {"name": name, "qos": qos, "priority": priority, "scope": scope}


@pytest.mark.parametrize(
    ("candidates", "order"),
    [
        pytest.param([wish("b"), wish("a", "dedicated_cores")], ["a", "b"], id="tenants stay"),
        pytest.param([wish("a", "dedicated_cores"), wish("b", "shared_cores")], ["b", "a"], id="tenants are equal"),
        pytest.param([wish("a", priority=1), wish("b", priority=2)], ["b", "a"], id="high priority stays"),
        pytest.param([wish("a", priority=None), wish("b", priority=-9)], ["b", "a"], id="no priority is the lowest"),
        pytest.param(
            [wish("a", scope="other"), wish("b", scope="cpu"), wish("c", scope="memory"), wish("d", scope="force")],
            ["d", "c", "b", "a"],
            id="then by scope",
        ),
        pytest.param([wish("a"), wish("b")], ["b", "a"], id="the smallest name goes first"),
        pytest.param([], [], id="nobody"),
    ],
)
def test_soft_victim_order_follows_its_rules(candidates: list[dict[str, Any]], order: list[str]) -> None:
    for given_order in (candidates, candidates[::-1]):
        answer = ask("soft_victim_order", candidates=given_order)
        assert answer == {"order": order, "victim": order[-1] if order else None}


@given(
    st.lists(
        st.builds(
            wish,
            st.sampled_from("abcdefgh"),
            st.sampled_from(["reclaimed_cores", "shared_cores", "dedicated_cores"]),
            st.none() | st.integers(-2, 2),
            st.sampled_from(["force", "memory", "cpu", "x"]),
        ),
        min_size=1,
        unique_by=lambda c: c["name"],
    )
)
def test_a_tenant_is_the_soft_victim_only_where_no_reclaimed_pod_is_a_candidate(
    candidates: list[dict[str, Any]],
) -> None:
    by_name = {c["name"]: c for c in candidates}
    victim = by_name[ask("soft_victim_order", candidates=candidates)["victim"]]
    if victim["qos"] != "reclaimed_cores":
        assert all(c["qos"] != "reclaimed_cores" for c in candidates)


@pytest.mark.parametrize(
    ("cached", "api", "result", "outcome"),
    [
        ("u1", "u1", "ok", "evicted"),
        ("u1", "u1", "not_found", "evicted"),
        ("u1", "u1", "failed", "retry"),
        ("u1", "u1", "budget", "wait"),
        ("u1", None, "ok", "evicted"),
        (None, "u1", "ok", "evicted"),
        (None, None, "ok", "gone"),
        ("u2", "u1", "ok", "gone"),
        (None, "u2", "failed", "gone"),
    ],
)
def test_what_an_attempt_comes_to(cached: str | None, api: str | None, result: str, outcome: str) -> None:
    assert ask("evict_outcome", uid="u1", cached_uid=cached, api_uid=api, api_result=result) == {"outcome": outcome}


LEVEL = "katalyst.kubewharf.io/qos_level"
KILLERS: dict[str, Any] = {
    "default_killer": "api",
    "qos_killers": {"reclaimed_cores": "container"},
    "registered_killers": ["api", "container"],
}


@pytest.mark.parametrize(
    ("annotations", "killer"),
    [
        ({LEVEL: "reclaimed_cores"}, "container"),
        ({LEVEL: "shared_cores"}, "api"),
        ({}, "api"),
        ({LEVEL: "nonsense"}, "api"),
        ({"tier": "batch"}, "container"),
    ],
)
def test_a_pod_is_evicted_by_the_killer_of_its_level(annotations: dict[str, Any], killer: str) -> None:
    selectors = {"reclaimed_cores": {"tier": "batch"}}
    assert ask("choose_killer", annotations=annotations, expanded_selectors=selectors, **KILLERS)["killer"] == killer


@pytest.mark.parametrize("wrong", [{"default_killer": "x"}, {"qos_killers": {"shared_cores": "x"}}], ids=str)
def test_a_killer_that_is_not_there_is_refused_whoever_is_to_go(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="'x' is not registered; registered: api, container") as refused:
        ask("choose_killer", annotations={}, **KILLERS | wrong)
    assert refused.value.reason == "unknown_killer"
