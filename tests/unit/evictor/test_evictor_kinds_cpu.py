"""Load, suppression, NUMA CPU, scores and frequencies: the rules one by one, and laws."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kind_door import ask, says
from pydantic import ValidationError


def loaded(name: str, *loads: float, pool: str = "share") -> dict[str, Any]:
    return {"name": name, "pool": pool, "loads": list(loads)}


def load(*pods: dict[str, Any], cpus: float = 10, **inputs: Any) -> dict[str, Any]:
    return ask("cpu_load_pressure", **{"pools": {"share": {"cpus": cpus}}, "pods": list(pods)} | inputs)


SCOPE = {"scope": "cpu.load.1min.container", "condition": "CPUPressure/NoSchedule"}


@pytest.mark.parametrize(
    ("pods", "inputs", "want"),
    [
        pytest.param([loaded("a", *[10] * 10)], {}, {"met": "NOT_MET", "scope": None}, id="equal"),
        pytest.param([loaded("a", *[11] * 10)], {}, {"met": "SOFT_MET", "victims": []} | SCOPE, id="soft"),
        pytest.param([loaded("a", *[18] * 10)], {}, {"met": "SOFT_MET"}, id="at the upper bound"),
        pytest.param([loaded("a", *[19] * 10)], {}, {"met": "HARD_MET", "victims": ["a"]} | SCOPE, id="hard"),
        pytest.param([loaded("a", *[19] * 8)], {}, {"met": "HARD_MET"}, id="8 of a ring of 10"),
        pytest.param([loaded("a", *[19] * 7)], {}, {"met": "NOT_MET"}, id="7 of a ring of 10 that is not full"),
        pytest.param([loaded("a", *[19] * 7, *[11] * 3)], {}, {"met": "SOFT_MET"}, id="hard not often enough"),
        pytest.param([loaded("a", *[99] * 9, *[1] * 10)], {}, {"met": "NOT_MET"}, id="only what the ring holds"),
        pytest.param([loaded("a", *[6] * 10), loaded("b", *[5] * 10)], {}, {"met": "SOFT_MET"}, id="summed"),
        pytest.param(
            [loaded("a", *[6] * 10), loaded("b", *[5] * 8)], {}, {"met": "SOFT_MET"}, id="the newest are of one moment"
        ),
        pytest.param(
            [loaded("b", *[10] * 10), loaded("a", *[10] * 10), loaded("c", *[9] * 10)],
            {"top_n": 2},
            {"victims": ["a", "b"]},
            id="the largest sums, equal ones by name",
        ),
        pytest.param(
            [loaded("a", *[19] * 10)], {"since_last_eviction_s": 299}, {"met": "HARD_MET", "victims": []}, id="cooling"
        ),
        pytest.param([loaded("a", *[19] * 10)], {"since_last_eviction_s": 300}, {"victims": ["a"]}, id="cooled down"),
        pytest.param([loaded("a", *[19] * 10)], {"grace_period_s": 7}, {"deletion_grace_s": 7}, id="grace"),
        pytest.param([loaded("a", *[19] * 10)], {}, {"deletion_grace_s": None}, id="the pod's own grace"),
        pytest.param(
            [loaded("a", *[99] * 10, pool="z"), loaded("b", *[99] * 10, pool="y")],
            {"pools": {"z": {"cpus": 1}, "y": {"cpus": 1}}},
            {"victims": ["b"]},
            id="of two hard pools the first by name",
        ),
        pytest.param(
            [loaded("a", *[11] * 10, pool="a"), loaded("b", *[99] * 10, pool="b")],
            {"pools": {"a": {"cpus": 10}, "b": {"cpus": 1}}},
            {"met": "HARD_MET", "victims": ["b"]},
            id="hard before soft",
        ),
        pytest.param(
            [loaded("a", *[99] * 10)],
            {"enable_reclaim": True, "reserved_for_allocate_cores": 0},
            {"met": "NOT_MET"},
            id="advised pools are as busy as they should be",
        ),
        pytest.param(
            [loaded("a", *[2] * 10)],
            {"enable_reclaim": True, "reserved_for_allocate_cores": 0, "shared_pools_at_limit": True},
            {"met": "SOFT_MET"},
            id="advised pools at their limit",
        ),
    ],
)
def test_cpu_load_pressure_follows_its_rules(
    pods: list[dict[str, Any]], inputs: dict[str, Any], want: dict[str, Any]
) -> None:
    assert says(load(*pods, **inputs), **want)


@pytest.mark.parametrize("pool", ["reclaim", "dedicated", "reserve", "fallback", "system-x", "isolation-1", "unknown"])
def test_pools_that_do_not_count(pool: str) -> None:
    pods = [loaded("a", *[99] * 10, pool=pool)]
    sizes = {} if pool == "unknown" else {pool: {"cpus": 1}}
    assert load(*pods, pools={"share": {"cpus": 1}} | sizes)["met"] == "NOT_MET"


@pytest.mark.parametrize(
    ("inputs", "want"),
    [
        ({}, (10, 18)),
        ({"lower_ratio": 0.5, "upper_ratio": 3}, (5, 30)),
        ({"enable_reclaim": True}, (10, 18)),
        ({"enable_reclaim": True, "reserved_for_allocate_cores": 0}, (13, 23.4)),
        ({"enable_reclaim": True, "reserved_for_allocate_cores": 0, "shared_pools_at_limit": True}, (1, 18)),
        ({"enable_reclaim": True, "reserved_for_allocate_cores": 0, "allow_overlap": True}, (10, 18)),
        ({"reserved_for_allocate_cores": 0, "shared_pools_at_limit": True}, (10, 18)),
    ],
)
def test_cpu_load_bounds_follow_their_rules(inputs: dict[str, Any], want: tuple[int, ...] | tuple[float, ...]) -> None:
    base = {"enable_reclaim": False, "reserved_for_allocate_cores": 4, "shared_pools_at_limit": False}
    answer = ask("cpu_load_bounds", pool_cpus=10, load=12, **base | inputs)
    assert (answer["lower"], answer["upper"]) == pytest.approx(want)


@given(
    pods=st.lists(st.lists(st.floats(0, 30), max_size=12), max_size=4),
    order=st.randoms(use_true_random=False),
    cpus=st.integers(1, 20),
)
def test_more_cpus_never_make_load_worse_and_the_order_of_pods_means_nothing(
    pods: list[list[float]], order: Random, cpus: int
) -> None:
    given_pods = [loaded(f"p{i}", *loads) for i, loads in enumerate(pods)]
    mixed = list(given_pods)
    order.shuffle(mixed)
    strength = ["NOT_MET", "SOFT_MET", "HARD_MET"].index
    now = load(*given_pods, cpus=cpus, top_n=9)
    assert now == load(*mixed, cpus=cpus, top_n=9)
    assert strength(load(*given_pods, cpus=cpus + 1)["met"]) <= strength(now["met"])
    assert not now["victims"] or now["met"] == "HARD_MET"


def suppressed(name: str, request: float, tolerance: float | None = 1.2, **fields: Any) -> dict[str, Any]:
    return {"name": name, "request_cores": request, "tolerance_ratio": tolerance} | fields


def suppression(*pods: dict[str, Any], at: tuple[float, ...] = (0, 301), **inputs: Any) -> list[list[str]]:
    base = {"reclaim_pool_cpus": 10, "cpu_usage_ratio": 0.5, "reclaim_usage_cores": 5}
    answer = ask("cpu_suppression", pods=list(pods), steps=[{"t_s": t} for t in at], **base | inputs)
    return [step["soft_victims"] for step in answer["steps"]]


@pytest.mark.parametrize(
    ("pods", "inputs", "last"),
    [
        pytest.param([suppressed("a", 12)], {}, [], id="at its tolerance"),
        pytest.param([suppressed("a", 12.1)], {}, ["a"], id="beyond it"),
        pytest.param([suppressed("a", 12.1)], {"at": (0, 300)}, [], id="not for long enough"),
        pytest.param([suppressed("a", 49, None)], {}, [], id="a pod that says nothing bears up to the maximum"),
        pytest.param([suppressed("a", 51, None)], {}, ["a"], id="and no more"),
        pytest.param([suppressed("a", 51, 99)], {}, ["a"], id="whatever it says"),
        pytest.param([suppressed("a", 6)], {"reclaim_quota_cores": 4}, ["a"], id="the quota limits the supply"),
        pytest.param([suppressed("a", 1)], {"cpu_usage_ratio": 1, "reclaim_usage_cores": 0}, ["a"], id="no supply"),
        pytest.param([suppressed("a", 0)], {"cpu_usage_ratio": 1, "reclaim_usage_cores": 0}, [], id="no request"),
        pytest.param([suppressed("b", 8), suppressed("a", 8)], {}, ["a"], id="what goes takes its request with it"),
        pytest.param(
            [suppressed("a", 20, priority=5), suppressed("b", 20, priority=1), suppressed("c", 30)],
            {},
            ["c", "b", "a"],
            id="large requests first, then low priority",
        ),
    ],
)
def test_cpu_suppression_follows_its_rules(pods: list[dict[str, Any]], inputs: dict[str, Any], last: list[str]) -> None:
    assert suppression(*pods, **inputs)[-1] == last


@given(
    pods=st.lists(st.tuples(st.floats(0.1, 30), st.none() | st.floats(0, 9)), max_size=5),
    at=st.lists(st.floats(0, 1000), max_size=6).map(sorted),
)
def test_nobody_goes_before_the_time_and_what_stays_is_borne(
    pods: list[tuple[float, float | None]], at: list[float]
) -> None:
    asking = [suppressed(f"p{i}", request, tolerance) for i, (request, tolerance) in enumerate(pods)]
    for t_s, victims in zip(at, suppression(*asking, at=tuple(at)), strict=True):
        assert not victims or t_s - at[0] > 300
        left = [p for p in asking if p["name"] not in victims]
        if victims:
            going = {p["name"]: p for p in asking if p["name"] in victims}
            least = min(min(p["tolerance_ratio"] if p["tolerance_ratio"] is not None else 5, 5) for p in going.values())
            assert sum(p["request_cores"] for p in asking) / 10 > least
        assert len(left) + len(victims) == len(asking)


def on(name: str, numa: int | None = 0, *usage: float, kind: str | None = "ReplicaSet") -> dict[str, Any]:
    return {"name": name, "owner_kind": kind, "numa": numa, "usage": list(usage)}


def numa_cpu(numas: dict[str, list[float]], *pods: dict[str, Any], **inputs: Any) -> dict[str, Any]:
    base = {"enabled": True, "threshold_ratio": 0.5, "expand_ratio": 1.0, "ring_size": 2, "met_ratio": 0.5}
    of = {numa: {"usage": usage} for numa, usage in numas.items()}
    return ask("numa_cpu_pressure", numas=of, pods=list(pods), **base | inputs)


CONDITION = "NumaCPUPressure/NoSchedule"


@pytest.mark.parametrize(
    ("numas", "pods", "inputs", "want"),
    [
        pytest.param({"0": [0.5, 0.5]}, [on("a", 0, 0.5)], {}, {"met": "NOT_MET", "victims": []}, id="equal"),
        pytest.param({"0": [0.4]}, [], {"expand_ratio": 0.7}, {"met": "HARD_MET"}, id="threshold times expand"),
        pytest.param(
            {"0": [0.6, 0.1]},
            [on("a", 0, 0.6)],
            {},
            {"met": "HARD_MET", "scope": "cpu.usage.container", "condition": CONDITION, "overloaded_numas": [0]},
            id="half of the ring, every node",
        ),
        pytest.param(
            {"0": [0.6, 0.6], "1": [0.1]},
            [on("a", 0, 0.6)],
            {"filters": []},
            {"condition": None, "overloaded_numas": [0], "victims": ["a"]},
            id="not every node",
        ),
        pytest.param({"0": [0.6, 0.6]}, [on("a")], {"enabled": False}, {"met": "NOT_MET", "victims": []}, id="off"),
        pytest.param({"0": [0.6, 0.6]}, [], {}, {"victims": []}, id="no pod"),
        pytest.param(
            {"0": [0.7, 0.7], "10": [0.9, 0.9], "2": [0.8, 0.8]},
            [on("a", 0, 0.2), on("b", 10, 0.4), on("c", 2, 0.3)],
            {"scorers": ["Usage"]},
            {"overloaded_numas": [0, 2, 10], "victims": ["b"]},
            id="sought on the fullest node",
        ),
        pytest.param(
            {"0": [0.6], "1": [0.1]},
            [on("a", 0), on("b", 1), on("c", None), on("d", 0, kind="DaemonSet"), on("e", 0, kind=None)],
            {"filters": ["OwnerRef", "OverloadNuma"], "skipped_owner_kinds": ["DaemonSet"]},
            {"candidates": ["a", "c", "e"]},
            id="filters",
        ),
        pytest.param(
            {"0": [0.9, 0.9]},
            [on("small", 0, 0.1), on("b", 0, 0.4), on("a", 0, 0.4)],
            {"scorers": ["Usage"], "top_n": 3, "grace_period_s": 9},
            {"victims": ["a", "b", "small"], "deletion_grace_s": 9},
            id="scores, then names",
        ),
    ],
)
def test_numa_cpu_pressure_follows_its_rules(
    numas: dict[str, Any], pods: list[dict[str, Any]], inputs: dict[str, Any], want: dict[str, Any]
) -> None:
    assert says(numa_cpu(numas, *pods, **inputs), **want)


@pytest.mark.parametrize(
    ("usage", "gap", "score"),
    [
        (0.5, 0.5, 60),
        (0.35, 0.5, 30),
        (0.8, 0.5, 0),
        (0.79, 0.5, 2),
        (0.2, 0.5, -1000),
        (0.21, 0.5, 2),
        (0.1, -0.1, 60),
        (None, 0.5, 0),
        (0.5, None, 0),
    ],
)
def test_the_usage_score_is_high_where_a_pod_uses_what_is_too_much(
    usage: float | None, gap: float | None, score: int
) -> None:
    pods = [{"name": "p", "usage_avg_ratio": usage}]
    assert ask("victim_scores", scorers=["Usage"], gap_ratio=gap, pods=pods)["scores"] == {"p": score}


@pytest.mark.parametrize(
    ("windows", "score"),
    [
        ({}, 0),
        (None, 0),
        ({"1": 0}, 100),
        ({"1": 0.075}, 95),
        ({"1": 0.15}, 55),
        ({"1": 0.225}, 50),
        ({"1": 0.3}, 10),
        ({"1": 0.4}, 5),
        ({"1": 0.5}, -5000),
        ({"2": 1.0}, -5000),
        ({"1": 0.3, "24": 0.2}, 14),
    ],
)
def test_the_frequency_score_spares_who_was_evicted_often(windows: dict[str, Any] | None, score: int) -> None:
    pods = [{"name": "p", "eviction_ratio_by_window_h": windows}]
    assert ask("victim_scores", scorers=["WorkloadEvictionFrequency"], pods=pods)["scores"] == {"p": score}


def test_scores_add_up_and_order_the_highest_first_then_by_name() -> None:
    pods = [{"name": n, "usage_avg_ratio": u, "eviction_ratio_by_window_h": {"1": 0}} for n, u in
            (("c", 0.5), ("b", 0.4), ("a", 0.4))]  # fmt: skip
    answer = ask("victim_scores", scorers=["Usage", "WorkloadEvictionFrequency"], gap_ratio=0.5, pods=pods)
    assert answer == {"scores": {"a": 140, "b": 140, "c": 160}, "order": ["c", "a", "b"]}
    assert ask("victim_scores", scorers=[], pods=pods)["order"] == ["a", "b", "c"]


@pytest.mark.parametrize("wrong", [{"0": 1}, {"-1": 1}, {"x": 1}], ids=str)
def test_a_window_without_hours_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ask("victim_scores", scorers=[], pods=[{"name": "p", "eviction_ratio_by_window_h": wrong}])


def test_filters_keep_the_order_and_what_is_unknown() -> None:
    pods = [
        {"name": "z", "owner_kind": "DaemonSet", "on_overloaded_numa": None},
        {"name": "y", "owner_kind": None, "on_overloaded_numa": None},
        {"name": "x", "owner_kind": "Job", "on_overloaded_numa": False},
        {"name": "w", "owner_kind": "Job", "on_overloaded_numa": True},
    ]
    asked = {"skipped_owner_kinds": ["DaemonSet"], "pods": pods}
    assert ask("victim_filters", filters=[], **asked)["kept"] == ["z", "y", "x", "w"]
    assert ask("victim_filters", filters=["OwnerRef"], **asked)["kept"] == ["y", "x", "w"]
    assert ask("victim_filters", filters=["OwnerRef", "OverloadNuma"], **asked)["kept"] == ["y", "w"]


def bucket(age_s: float, count: int, duration_s: float = 100) -> dict[str, Any]:
    return {"age_s": age_s, "duration_s": duration_s, "count": count}


@pytest.mark.parametrize(
    ("buckets", "pods", "want"),
    [
        pytest.param([], 4, (0, 0, None), id="nothing"),
        pytest.param([bucket(100, 0)], None, (0, 0, None), id="none evicted"),
        pytest.param([bucket(1000, 3), bucket(200, 1)], 8, (4, 0.5, 200), id="all inside"),
        pytest.param([bucket(1000, 3)], None, (3, None, 1000), id="nobody knows how many there should be"),
        pytest.param([bucket(1050, 3)], 1, (2, 2, 1050), id="half of it inside, rounded up from 1.5"),
        pytest.param([bucket(1050, 5)], 1, (3, 3, 1050), id="half of it inside, rounded up from 2.5"),
        pytest.param([bucket(1075, 5)], 1, (1, 1, 1075), id="a quarter of it inside"),
        pytest.param([bucket(1100, 5)], 1, (0, 0, 1100), id="just outside"),
        pytest.param([bucket(50, 5)], 5, (5, 1, 50), id="not over yet"),
    ],
)
def test_eviction_frequency_follows_its_rules(
    buckets: list[dict[str, Any]], pods: int | None, want: tuple[float | None, ...]
) -> None:
    answer = ask("eviction_frequency", buckets=buckets, window_s=1000, expected_pods=pods)
    assert tuple(answer.values()) == want


@given(st.lists(st.builds(bucket, st.floats(0, 5000), st.integers(0, 9), st.floats(1, 500))), st.floats(0, 5000))
def test_a_longer_window_holds_no_fewer_evictions(buckets: list[dict[str, Any]], window_s: float) -> None:
    counts = [ask("eviction_frequency", buckets=buckets, window_s=w)["count"] for w in (window_s, window_s + 100)]
    assert counts[0] <= counts[1] <= sum(b["count"] for b in buckets)
