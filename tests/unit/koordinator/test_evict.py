"""Eviction as Koordinator's agent does it: validity, amounts, orders, tasks, a tick."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.reference.koordinator.evict.tasks import EvictTask, work_off
from sublet.whatif import Malformed, answer, kinds

KNOWN = kinds()
GB = 10**9
BATCH, MID = "kubernetes.io/batch-memory", "kubernetes.io/mid-memory"
WILLING = {"koordinator.sh/eviction-enabled": "true"}


def ask(kind: str, **inputs: Any) -> Any:
    return answer(KNOWN, kind, inputs)


def be(name: str, used: int | None = None, priority: int | None = 5000, **fields: Any) -> dict[str, Any]:
    return {"name": name, "koord_qos": "BE", "priority": priority, "memory_used_bytes": used, **fields}


def marks(threshold: int | None, lower: int | None = None, **fields: Any) -> dict[str, Any]:
    return {"memory_evict_threshold_percent": threshold, "memory_evict_lower_percent": lower, **fields}


def requested(threshold: int | None, lower: int | None, priority: int | None = 5999) -> dict[str, Any]:
    return {
        "memory_allocatable_evict_threshold_percent": threshold,
        "memory_allocatable_evict_lower_percent": lower,
        "allocatable_evict_priority_threshold": priority,
    }


def satisfied(lower: int | None, upper: int | None) -> dict[str, Any]:
    return {"satisfaction_lower_percent": lower, "satisfaction_upper_percent": upper}


@pytest.mark.parametrize(
    ("feature", "strategy", "valid"),
    [
        pytest.param("BEMemoryEvict", None, False, id="no strategy"),
        pytest.param("BEMemoryEvict", {}, False, id="nothing said"),
        pytest.param("BEMemoryEvict", marks(70), True, id="threshold alone"),
        pytest.param("BEMemoryEvict", marks(0), True, id="zero, down to -2"),
        pytest.param("BEMemoryEvict", marks(-1), False, id="below zero"),
        pytest.param("BEMemoryEvict", marks(70, 69), True, id="just below"),
        pytest.param("BEMemoryEvict", marks(70, 70), False, id="lower at the threshold"),
        pytest.param("BEMemoryEvict", marks(None, 60), False, id="lower alone"),
        pytest.param("MemoryEvict", marks(70), False, id="needs a priority"),
        pytest.param("MemoryEvict", marks(70, evict_enabled_priority_threshold=0), True, id="priority 0 is one"),
        pytest.param("MemoryAllocatableEvict", requested(80, 70, 7999), True, id="mid"),
        pytest.param("MemoryAllocatableEvict", requested(80, 70, 8000), False, id="above mid"),
        pytest.param("MemoryAllocatableEvict", requested(80, None), False, id="no default of lower here"),
        pytest.param("MemoryAllocatableEvict", requested(80, 80), False, id="lower at the threshold, by requests"),
        pytest.param("MemoryAllocatableEvict", requested(80, 70, None), False, id="no priority"),
        pytest.param("BECPUEvict", satisfied(60, 60), True, id="equal, at the highest lower"),
        pytest.param("BECPUEvict", satisfied(61, 70), False, id="lower too high"),
        pytest.param("BECPUEvict", satisfied(0, 50), False, id="lower of zero"),
        pytest.param("BECPUEvict", satisfied(1, 99), True, id="widest"),
        pytest.param("BECPUEvict", satisfied(30, 100), False, id="upper of 100"),
        pytest.param("BECPUEvict", satisfied(40, 30), False, id="upper below lower"),
        pytest.param("BECPUEvict", satisfied(None, 30), False, id="upper alone"),
        pytest.param("CPUEvict", marks(70) | satisfied(30, 40), False, id="another feature"),
    ],
)
def test_a_feature_runs_by_a_strategy_that_it_can_follow(feature: str, strategy: Any, valid: bool) -> None:
    assert ask("koord_evict_config_valid", feature=feature, strategy=strategy) == {"valid": valid}


@pytest.mark.parametrize(
    ("capacity", "used", "strategy", "wanted"),
    [
        pytest.param(100, 69, marks(70), 0, id="below"),
        pytest.param(100, 70, marks(70), 2, id="at the threshold"),
        pytest.param(1000, 709, marks(71), 0, id="a percent begun is none"),
        pytest.param(1000, 719, marks(71), 20, id="whole percents"),
        pytest.param(120 * GB, 115 * GB, marks(80, 80), 18 * GB, id="as it is, valid or not"),
        pytest.param(120 * GB, 115 * GB, marks(80, 97), 0, id="never less than nothing"),
        pytest.param(100, 99, marks(None), 0, id="no threshold"),
        pytest.param(0, 99, marks(70), 0, id="no capacity"),
        pytest.param(-5, 99, marks(70), 0, id="a capacity below zero"),
    ],
)
def test_bytes_by_use(capacity: int, used: int, strategy: Any, wanted: int) -> None:
    node = {"capacity_memory_bytes": capacity}
    found = ask("release_by_used", node=node, node_memory_used_bytes=used, strategy=strategy)
    assert found == {"to_release_bytes": wanted}


def batch(name: str, amount: int, priority: int | None = 5000, **fields: Any) -> dict[str, Any]:
    return be(name, priority=priority, requests={BATCH: amount}, **fields)


def mid(name: str, amount: int, priority: int = 7000) -> dict[str, Any]:
    return {"name": name, "koord_qos": "LS", "priority": priority, "requests": {MID: amount, "memory": amount}}


@pytest.mark.parametrize(
    ("allocatable", "strategy", "pods", "release", "by_pod"),
    [
        pytest.param({BATCH: 100}, requested(80, 70), [batch("a", 80)], {}, {}, id="at the threshold"),
        pytest.param({BATCH: 100}, requested(80, 70), [batch("a", 81)], {BATCH: 11}, {"a": {BATCH: 81}}, id="above"),
        pytest.param(None, requested(80, 70), [batch("a", 81)], {}, {}, id="absent is not zero"),
        pytest.param({BATCH: 0}, requested(80, 70), [batch("a", 81)], {BATCH: 81}, {"a": {BATCH: 81}}, id="zero"),
        pytest.param({BATCH: -1}, requested(80, 70), [batch("a", 81)], {}, {}, id="not credible"),
        pytest.param({BATCH: 0}, requested(80, 70), [batch("a", 0)], {}, {}, id="nothing requested"),
        pytest.param({BATCH: 100}, requested(0, 0), [batch("a", 5)], {BATCH: 5}, {"a": {BATCH: 5}}, id="zero percent"),
        pytest.param({BATCH: 100}, requested(-1, -2), [batch("a", 500)], {}, {}, id="below zero percent"),
        pytest.param({BATCH: 100}, requested(80, None), [batch("a", 500)], {}, {}, id="no lower"),
        pytest.param(
            {BATCH: 100, MID: 100},
            requested(80, 70, 7999),
            [batch("b", 85), mid("m", 90)],
            {BATCH: 15, MID: 20},
            {"b": {BATCH: 85}, "m": {MID: 90}},
            id="each by itself",
        ),
        pytest.param(
            {BATCH: 100, MID: 100},
            requested(80, 70),
            [batch("b", 85), mid("m", 90), batch("none", 0), batch("high", 90, priority=5999, labels=WILLING)],
            {BATCH: 105},
            {"b": {BATCH: 85}, "high": {BATCH: 90}},
            id="up to the priority",
        ),
        pytest.param(
            {BATCH: 100}, requested(80, 70), [batch("a", 90, None)], {BATCH: 20}, {"a": {BATCH: 90}}, id="no value"
        ),
    ],
)  # fmt: skip
def test_amounts_by_allocatable(allocatable: Any, strategy: Any, pods: Any, release: Any, by_pod: Any) -> None:
    node = {"capacity_memory_bytes": 1000, "allocatable": allocatable}
    found = ask("release_by_allocatable", node=node, strategy=strategy, pods=pods)
    assert found == {"to_release": release, "per_pod_release": by_pod}


CPU = {"satisfaction_lower_percent": 30, "satisfaction_upper_percent": 40}


def samples(limit: int, used: int, request: int, count: int = 9) -> dict[str, int]:
    names = ("be_real_limit_millicpu", "be_used_millicpu", "be_request_millicpu", "sample_count")
    return dict(zip(names, (limit, used, request, count), strict=True))


STARVING = samples(10_000, 9500, 50_000)


@pytest.mark.parametrize(
    ("inputs", "wanted"),
    [
        pytest.param({"window": STARVING, "current": STARVING}, 10_000, id="both"),
        pytest.param({"window": None, "current": STARVING}, 0, id="no window"),
        pytest.param({"window": STARVING, "current": None}, 0, id="nothing now"),
        pytest.param({"window": samples(10_000, 9500, 50_000, 0), "current": STARVING}, 0, id="no samples"),
        pytest.param({"window": samples(13_000, 12_000, 50_000), "current": STARVING}, 7000, id="the smaller"),
        pytest.param({"window": samples(10_000, 8999, 50_000), "current": STARVING}, 0, id="not used up"),
        pytest.param({"window": samples(10_000, 9000, 50_000), "current": STARVING}, 10_000, id="just used up"),
        pytest.param({"window": samples(999, 0, 50_000), "current": STARVING}, 10_000, id="less than a core"),
        pytest.param({"window": samples(0, 0, 50_000), "current": STARVING}, 0, id="no limit"),
        pytest.param({"window": samples(10_000, 9500, 0), "current": STARVING}, 0, id="no request"),
        pytest.param({"window": samples(15_000, 15_000, 50_000), "current": STARVING}, 5000, id="at lower"),
        pytest.param({"window": samples(15_001, 15_001, 50_000), "current": STARVING}, 0, id="above lower"),
        pytest.param(
            {"window": STARVING, "current": STARVING, "policy": "evictByAllocatable"}, 0, id="absent allocatable"
        ),
        pytest.param(
            {"window": STARVING, "current": STARVING, "policy": "evictByAllocatable",
             "batch_cpu_allocatable_millicpu": 0}, 19_999, id="zero counts as one",
        ),
        pytest.param(
            {"window": STARVING, "current": STARVING, "policy": "evictByAllocatable",
             "batch_cpu_allocatable_millicpu": -1}, 0, id="allocatable below zero",
        ),
        pytest.param(
            {"window": STARVING, "current": STARVING, "policy": "evictByAllocatable",
             "batch_cpu_allocatable_millicpu": 8000}, 12_000, id="by allocatable",
        ),
        pytest.param(
            {"window": STARVING, "current": STARVING, "batch_cpu_allocatable_millicpu": 0}, 10_000, id="not asked for"
        ),
    ],
)  # fmt: skip
def test_millis_by_satisfaction(inputs: Any, wanted: int) -> None:
    assert ask("be_satisfaction_release", **CPU, **inputs) == {"release_millicpu": wanted}


def test_cpu_victims_go_by_priority_then_share_then_name() -> None:
    def pod(name: str, priority: int | None, request: int | None, used: int, qos: str = "BE") -> dict[str, Any]:
        return {"name": name, "koord_qos": qos, "priority": priority, "request_millicpu": request,
                "cpu_used_millicpu": used}  # fmt: skip

    pods = [
        pod("b", 10, 1000, 500), pod("a", 10, 2000, 1000), pod("low", 5, 1000, 1), pod("none", 10, None, 900),
        pod("zero", 10, 0, 900), pod("unknown", None, 1000, 1000), pod("ls", 1, 1000, 1000, "LS"),
    ]  # fmt: skip
    found = ask("be_cpu_victim_order", pods=pods)
    assert found == {
        "victims": ["unknown", "low", "a", "b", "none", "zero"],
        "usage_ratios": [1, 0.001, 0.5, 0.5, 0, 0],
    }
    assert ask("be_cpu_victim_order", pods=pods[::-1]) == found


def test_victims_of_any_class_go_by_three_priorities_then_use_then_name() -> None:
    def willing(name: str, priority: int | None, used: int | None, eviction: str = "", sub: str = "") -> dict[str, Any]:
        said = {"koordinator.sh/eviction-priority": eviction} if eviction else {}
        labels = WILLING | ({"koordinator.sh/priority": sub} if sub else {})
        return be(name, used, priority, annotations=said, labels=labels)

    pods = [
        willing("first", 3000, 1, eviction="-1"),
        willing("unreadable", 100, 5, eviction="soon"),
        willing("too-long", 100, 4, eviction="99999999999"),
        willing("no-use", 100, None),
        willing("sub-low", 120, 1, sub="50"),
        willing("sub-none", 120, 9),
        willing("tie-a", 130, 7),
        willing("tie-b", 130, 7),
        willing("last", 1, 9, eviction="100"),
    ]
    others = [
        willing("by-class", None, 9),
        willing("above", 3001, 9),
        be("unwilling", 9, 1),
        be("no", 9, 1, labels={"koordinator.sh/eviction-enabled": "True"}),
        willing("finished", 1, 9) | {"phase": "Succeeded"},
        willing("lost", 1, 9) | {"phase": "Unknown"},
    ]
    found = ask("koord_victim_order", priority_threshold=3000, pods=[*others, *pods[::-1]])
    assert found["victims"] == [pod["name"] for pod in pods]


@pytest.mark.parametrize(
    ("said", "allowed"),
    [
        pytest.param(None, True, id="nothing"),
        pytest.param('["a","MemoryEvict"]', True, id="named"),
        pytest.param('["MemoryEvictHigh"]', False, id="exactly"),
        pytest.param("[]", False, id="none"),
        pytest.param("", False, id="empty"),
        pytest.param('"MemoryEvict"', False, id="no list"),
        pytest.param("null", False, id="null"),
        pytest.param("MemoryEvict", False, id="no JSON"),
        pytest.param('["MemoryEvict", 1]', False, id="no list of names"),
        pytest.param("[" * 10_000, False, id="deep"),
    ],
)
def test_a_pod_names_the_policies_that_may_evict_it(said: str | None, allowed: bool) -> None:
    annotations = {} if said is None else {"koordinator.sh/eviction-policy": said}
    assert ask("eviction_policy_allowed", policy="MemoryEvict", annotations=annotations) == {"allowed": allowed}


def pending(target: int, *victims: tuple[str, int | None, bool]) -> Any:
    listed = [{"name": n, "memory_used_bytes": used, "already_evicted": gone} for n, used, gone in victims]
    return ask("pending_release", to_release_bytes=target, victims=listed)


def test_what_is_on_its_way_out_counts_where_its_turn_comes() -> None:
    assert pending(2, ("gone", 1, True), ("next", 2, False)) == {"newly_evicted": ["next"], "counted_release_bytes": 3}
    assert pending(2, ("next", 2, False), ("gone", 1, True)) == {"newly_evicted": ["next"], "counted_release_bytes": 2}
    assert pending(2, ("a", 1, False), ("a", 1, False)) == {"newly_evicted": ["a"], "counted_release_bytes": 1}
    assert pending(2, ("a", None, False), ("b", 2, False))["newly_evicted"] == ["a", "b"]
    assert pending(0, ("a", 1, False)) == {"newly_evicted": [], "counted_release_bytes": 0}
    assert pending(-5, ("a", 1, True)) == {"newly_evicted": [], "counted_release_bytes": 0}


def test_tasks_share_what_a_victim_frees() -> None:
    found = ask(
        "multi_task_release",
        tasks=[
            {"credit": "used", "to_release": {"memory": 2, "empty": 0}, "victims": ["a", "stranger", "b"]},
            {"credit": "request", "to_release": {"cpu": 3, "mid": 2}, "victims": ["a", "b", "c", "d"]},
            {"credit": "used", "to_release": {"memory": 3}, "victims": ["d"]},
        ],
        pods=[
            {"name": "a", "used": {"memory": 2, "empty": 9}, "requests": {"cpu": 2}},
            {"name": "b", "used": {}, "requests": {"cpu": 1}},
            {"name": "c", "used": {"memory": 1}, "requests": {"mid": 2, "other": 5}},
            {"name": "d", "used": {"memory": 50}, "requests": {}},
        ],
    )
    assert found == {
        "newly_evicted": ["a", "b", "c"],
        "released": {"used": {"memory": 3}, "request": {"cpu": 3, "mid": 2}},
    }


amounts = st.dictionaries(st.sampled_from(["memory", "cpu"]), st.integers(-2, 9), max_size=2)
names = st.sampled_from("abcdef")
some_tasks = st.lists(
    st.builds(EvictTask, st.sampled_from(["used", "request"]), amounts, st.lists(names, max_size=6)), max_size=3
)


@given(tasks=some_tasks, pods=st.dictionaries(names, st.fixed_dictionaries({"used": amounts, "request": amounts})))
def test_nobody_goes_twice_or_for_a_task_that_is_done(tasks: Any, pods: Any) -> None:
    outcome = work_off(tasks, pods)
    assert len(set(outcome.newly_evicted)) == len(outcome.newly_evicted)
    assert set(outcome.newly_evicted) <= {name for task in tasks if task.resources for name in task.victims}
    for credit, sums in outcome.released.items():
        for resource, amount in sums.items():
            assert amount == sum(pods[name][credit].get(resource, 0) for name in outcome.newly_evicted)
    if outcome.newly_evicted:
        # Without its last victim some task would not be done.
        before = work_off(tasks, {name: pods[name] for name in outcome.newly_evicted[:-1]})
        assert not all(task.done(before.released) for task in tasks)


NODE = {"capacity_memory_bytes": 100}


def tick(*pods: Any, **inputs: Any) -> list[str]:
    asked = {"node": NODE, "node_memory_used_bytes": 90, "features": ["BEMemoryEvict"], "strategy": marks(80)} | inputs
    found: list[str] = ask("memory_evict_tick", pods=list(pods), **asked)["evicted"]
    return found


@pytest.mark.parametrize(
    ("inputs", "anybody"),
    [
        pytest.param({}, True, id="over"),
        pytest.param({"node": None}, False, id="no node"),
        pytest.param({"node": {"capacity_memory_bytes": 0}}, False, id="no capacity"),
        pytest.param({"node_memory_used_bytes": None}, False, id="use not known"),
        pytest.param({"strategy": None}, False, id="no strategy"),
        pytest.param({"strategy": marks(80, enable=False)}, False, id="switched off"),
        pytest.param({"strategy": marks(80, 85)}, False, id="not valid"),
        pytest.param({"features": []}, False, id="no feature"),
        pytest.param({"features": ["Other"]}, False, id="another feature"),
        pytest.param({"since_last_eviction_s": 3.9}, False, id="cooling"),
        pytest.param({"since_last_eviction_s": 4}, True, id="cooled down"),
        pytest.param({"since_last_eviction_s": 4, "cooldown_s": 5}, False, id="its own cooling"),
    ],
)
def test_a_tick_acts_on_what_is_known_and_switched_on(inputs: Any, anybody: bool) -> None:
    assert tick(be("a", 50), **inputs) == (["a"] if anybody else [])


def test_best_effort_pods_go_low_priority_first_then_large_then_without_a_figure() -> None:
    pods = [
        be("low", 1, 10), be("big-a", 2, 20), be("big-b", 2, 20), be("small", 1, 20), be("z-none", None, 20),
        be("a-zero", 0, 20), be("high", 1, 30),
    ]  # fmt: skip
    others = [be("ls", 90, 1) | {"koord_qos": "LS"}, be("unlabelled", 90, 1) | {"koord_qos": None}]
    others += [be("own-rules", 90, 1, annotations={"koordinator.sh/eviction-policy": '["MemoryEvict"]'})]
    assert tick(*others, *pods[::-1]) == [pod["name"] for pod in pods]


def test_what_one_feature_freed_counts_for_the_next() -> None:
    everything = ["MemoryEvict", "MemoryAllocatableEvict", "BEMemoryEvict"]
    strategy = marks(80, evict_enabled_priority_threshold=9999) | requested(50, 40)
    node = NODE | {"allocatable": {BATCH: 100}}
    labels = {"labels": WILLING}
    be_pod, asking = batch("be", 30, memory_used_bytes=12), be("asking", 0, 5001, requests={BATCH: 40}, **labels)
    ls = {"name": "ls", "koord_qos": "LS", "priority": 9000, "memory_used_bytes": 50, **labels}
    # 70 of 100 are requested, so that 30 should go: those of the first victim are enough.
    assert tick(be_pod, asking, ls, node=node, features=everything, strategy=strategy) == ["be"]
    # With more requested by others the second feature goes on, and the third still finds its task done.
    held = batch("held", 20, koord_qos="LS", labels={"koordinator.sh/priority-class": "koord-batch"})
    assert tick(be_pod, held, asking, ls, node=node, features=everything, strategy=strategy) == ["be", "asking"]
    # With less used by it the third feature goes on.
    lean = be_pod | {"memory_used_bytes": 1}
    assert tick(lean, held, asking, ls, node=node, features=everything, strategy=strategy) == ["be", "asking", "ls"]
    # Absent is not zero.
    assert tick(lean, asking, node=NODE, features=["MemoryAllocatableEvict"], strategy=strategy) == []


def test_of_those_who_request_the_largest_request_goes_first() -> None:
    pods = [batch("small", 30, memory_used_bytes=90, labels=WILLING), batch("large", 60, labels=WILLING)]
    node = NODE | {"allocatable": {BATCH: 100}}
    assert tick(*pods, node=node, features=["MemoryAllocatableEvict"], strategy=requested(80, 70)) == ["large"]


@pytest.mark.parametrize(
    ("kind", "inputs", "names"),
    [
        ("koord_evict_config_valid", {"feature": "x", "strategy": {"threshold": 1}}, "strategy.threshold"),
        ("release_by_used", {"node": NODE, "strategy": {}}, "node_memory_used_bytes"),
        ("be_cpu_victim_order", {"pods": [{"name": "a", "cpu_used_millicpu": 10**400}]}, "cpu_used_millicpu"),
        ("be_satisfaction_release", {**CPU, "policy": "other"}, "policy"),
        ("multi_task_release", {"tasks": [{"credit": "none", "to_release": {}, "victims": []}], "pods": []}, "credit"),
    ],
)
def test_a_question_that_does_not_fit_names_the_field(kind: str, inputs: Any, names: str) -> None:
    with pytest.raises(Malformed, match=names):
        ask(kind, **inputs)
