"""NUMA memory, the node's memory and resident memory: the rules one by one, and laws."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kind_door import GIB, ask
from pydantic import ValidationError

from services.evictor.core.detectors.memory.numa import (
    CACHE_RESERVE_BYTES,
    GAP_BYTES,
    GUARD_BYTES,
    Marks,
    adjusted,
    by_scale,
)

MARKS = {"0": {"min_bytes": GIB, "low_bytes": 3 * GIB}}


def numa(*free: int | None, **inputs: Any) -> list[str]:
    steps = [{"t_s": 5 * i, "numa_free_bytes": {"0": f}} for i, f in enumerate(free)]
    answer = ask("numa_memory_pressure", **{"watermarks": MARKS} | inputs, steps=steps)
    for step in answer["steps"]:
        acting = step["numa_actions"]["0"] != "noop"
        assert (step["met"], step["scope"]) == (("HARD_MET", "NumaMemory") if acting else ("NOT_MET", None))
        assert step["condition"] is None
    return [step["numa_actions"]["0"] for step in answer["steps"]]


SLIGHT, DEEP, DANGER = 3 * GIB - 1, 2 * GIB - 1, GIB - 1


def test_slightly_below_low_reclaimed_pods_go_after_seven_steps_and_all_after_twelve() -> None:
    assert numa(*[SLIGHT] * 13) == ["noop"] * 6 + ["reclaimed"] * 5 + ["all"] * 2


def test_deep_below_low_counts_twice_from_the_third_step_on() -> None:
    assert numa(*[DEEP] * 8) == ["noop"] * 4 + ["reclaimed"] * 2 + ["all"] * 2  # 1, 2, 4, 6, 8, 10, 12, 14


def test_more_than_a_gibibyte_below_low_is_deep_too() -> None:
    marks = {"0": {"min_bytes": 0, "low_bytes": 3 * GIB}}
    assert numa(*[2 * GIB - 1] * 5, watermarks=marks)[-1] == "reclaimed"
    assert numa(*[2 * GIB] * 5, watermarks=marks)[-1] == "noop"


def test_below_min_acts_at_once_and_escalates() -> None:
    assert numa(DANGER, DANGER) == ["reclaimed", "all"]
    assert numa(DANGER, DANGER, fast_eviction_wait_cycles=2) == ["reclaimed", "reclaimed"]
    assert numa(DANGER, fast_eviction_wait_cycles=0) == ["all"]


def test_above_low_nothing_happens_and_the_count_falls_to_the_reclaimed_threshold_first() -> None:
    assert numa(*[SLIGHT] * 12, 3 * GIB, SLIGHT) == ["noop"] * 6 + ["reclaimed"] * 5 + ["all", "noop", "reclaimed"]
    assert numa(DANGER, *[3 * GIB] * 20, SLIGHT)[1:] == ["noop"] * 21


def test_what_is_unknown_asks_for_nothing_and_counts_neither_way() -> None:
    assert numa(DANGER, None, DANGER) == ["reclaimed", "noop", "all"]
    assert numa(None, None) == ["noop", "noop"]


@given(st.lists(st.none() | st.integers(0, 4 * GIB), max_size=30))
def test_nothing_is_asked_for_above_low_and_danger_never_goes_by_unanswered(free: list[int | None]) -> None:
    for value, action in zip(free, numa(*free), strict=True):
        if value is None or value >= 3 * GIB:
            assert action == "noop"
        elif value < GIB:
            assert action in ("reclaimed", "all")


def test_watermarks_get_their_margins_and_low_rises_where_page_cache_is_scarce() -> None:
    plenty = adjusted(GIB, 2 * GIB, 5 * GIB)
    assert plenty == Marks(GIB + GAP_BYTES, 2 * GIB + GUARD_BYTES)
    scarce = adjusted(GIB, 2 * GIB, CACHE_RESERVE_BYTES - 1)
    assert scarce == Marks(GIB + GAP_BYTES, CACHE_RESERVE_BYTES)
    large = adjusted(GIB, 5 * GIB, 5 * GIB)
    assert large.low_bytes == 5 * GIB + GUARD_BYTES + GAP_BYTES
    assert by_scale(100 * GIB, 100) == Marks(0.0, GIB)


def system(*steps: dict[str, Any], every_s: float = 5, **inputs: Any) -> list[str]:
    given = [{"t_s": every_s * i, "system_free_bytes": 50 * GIB} | step for i, step in enumerate(steps)]
    base = {"system_total_bytes": 100 * GIB, "watermark_scale_factor": 100, "steps": given}
    answer = ask("system_memory_pressure", **base | inputs)
    for step in answer["steps"]:
        acting = step["system_action"] != "noop"
        want = ("HARD_MET", "SystemMemory", "MemoryPressure/NoSchedule") if acting else ("NOT_MET", None, None)
        assert (step["met"], step["scope"], step["condition"]) == want
    return [step["system_action"] for step in answer["steps"]]


def test_free_memory_is_compared_with_the_larger_of_watermark_and_minimum() -> None:
    assert system({"system_free_bytes": GIB - 1}, {"system_free_bytes": GIB}) == ["reclaimed", "noop"]
    assert system({"system_free_bytes": 2 * GIB - 1}, minimum_free_bytes=2 * GIB) == ["reclaimed"]


STALLED = {"workload_some_avg10_percent": 15.9, "pods_some_avg10_percent": [5.9, 5, 5, 1.9]}


@pytest.mark.parametrize(
    ("between", "want"),
    [
        pytest.param(STALLED, "reclaimed", id="stalled all the time"),
        pytest.param({"workload_some_avg10_percent": 14.9}, "noop", id="the workload has recovered"),
        pytest.param({}, "noop", id="the workload is unknown"),
        pytest.param(STALLED | {"pods_some_avg10_percent": [9, 9]}, "reclaimed", id="too few pods: the clock goes on"),
        pytest.param(STALLED | {"pods_some_avg10_percent": [2] * 3}, "reclaimed", id="low mean: the clock goes on"),
    ],
)
def test_a_stall_is_held_unless_the_workload_recovers(between: dict[str, Any], want: str) -> None:
    assert system(STALLED, STALLED, between, STALLED, psi={})[3] == want
    assert system(STALLED, STALLED, between, STALLED) == ["noop"] * 4


def test_a_stall_of_three_times_the_duration_reaches_everybody() -> None:
    said = system(*[STALLED] * 11, psi={})
    assert said == ["noop"] * 3 + ["reclaimed"] * 6 + ["all"] * 2


def test_a_mean_is_cut_to_a_whole_number() -> None:
    just = {"workload_some_avg10_percent": 15, "pods_some_avg10_percent": [4, 4, 4, 3.99]}
    assert system(*[just] * 4, psi={}) == ["noop"] * 4
    assert system(*[just] * 4, psi={"pods_mean_threshold_percent": 3})[-1] == "reclaimed"


def pages(*counts: int | None) -> list[dict[str, Any]]:
    return [{"kswapd_steal_pages": count} for count in counts]


def test_kswapd_is_busy_from_the_end_of_the_first_busy_interval_on() -> None:
    busy = pages(*(10_000 * i for i in range(6)))  # 2000 pages/s
    assert system(*busy, kswapd_exceed_duration_s=15) == ["noop"] * 4 + ["all"] * 2
    slower = pages(*(9_999 * i for i in range(9)))
    assert set(system(*slower, kswapd_exceed_duration_s=15)) == {"noop"}


@pytest.mark.parametrize("pause", [pages(20_000), pages(None)], ids=["slow", "unknown"])
def test_a_pause_stops_kswapds_clock(pause: list[dict[str, Any]]) -> None:
    steps = [*pages(0, 10_000, 20_000), *pause, *pages(40_000, 50_000, 60_000)]
    assert set(system(*steps, kswapd_exceed_duration_s=15)) == {"noop"}


def test_the_strongest_action_wins() -> None:
    steps = [{"kswapd_steal_pages": 10_000 * i, "system_free_bytes": 0} for i in range(3)]
    assert system(*steps, kswapd_exceed_duration_s=0) == ["reclaimed", "all", "all"]


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "system_free_bytes": st.integers(0, 2 * GIB),
                "kswapd_steal_pages": st.integers(0, 10**6),
                "workload_some_avg10_percent": st.floats(0, 100),
                "pods_some_avg10_percent": st.lists(st.floats(0, 100), max_size=4),
            },
        ),
        max_size=12,
    )
)
def test_tenants_are_reached_only_by_what_has_lasted(steps: list[dict[str, Any]]) -> None:
    said = system(*steps, psi={}, kswapd_exceed_duration_s=15)
    assert "all" not in said[:4]
    assert all(action != "noop" for s, action in zip(steps, said, strict=True) if s.get("system_free_bytes", GIB) < GIB)


def test_time_does_not_go_back() -> None:
    with pytest.raises(ValidationError, match="t_s goes back"):
        ask(
            "system_memory_pressure",
            system_total_bytes=1,
            watermark_scale_factor=1,
            steps=[{"t_s": 1, "system_free_bytes": 1}, {"t_s": 0, "system_free_bytes": 1}],
        )


def resident(
    name: str, *containers: tuple[int | None, int], qos: str = "shared_cores", **fields: Any
) -> dict[str, Any]:
    of = [{"request_bytes": request, "rss_bytes": rss} for request, rss in containers]
    return {"name": name, "qos": qos, "labels": {}, "rss_overuse_threshold_ratio": None, "containers": of} | fields


@pytest.mark.parametrize(
    ("pod", "over"),
    [
        pytest.param(resident("p", (100, 106)), True, id="above"),
        pytest.param(resident("p", (100, 105)), False, id="equal"),
        pytest.param(resident("p", (100, 150), (100, 50)), False, id="summed over the containers"),
        pytest.param(resident("p", (100, 300), (None, 1)), False, id="one container without a request"),
        pytest.param(resident("p", (0, 300)), False, id="a request of nothing is none"),
        pytest.param(resident("p"), False, id="no container"),
        pytest.param(resident("p", (100, 106), rss_overuse_threshold_ratio=2), False, id="its own threshold"),
        pytest.param(resident("p", (100, 106), rss_overuse_threshold_ratio=0), False, id="no usable threshold"),
        pytest.param(resident("p", (100, 106), qos="reclaimed_cores"), True, id="reclaimed"),
        pytest.param(resident("p", (100, 106), qos="dedicated_cores"), False, id="dedicated"),
        pytest.param(resident("p", (100, 106), qos="system_cores"), False, id="system"),
    ],
)
def test_rss_overuse_follows_its_rules(pod: dict[str, Any], over: Any) -> None:
    asked = {"default_threshold_ratio": 1.05, "label_filter": {}, "pods": [pod]}
    assert ask("rss_overuse", enabled=True, **asked)["soft_victims"] == (["p"] if over else [])
    assert ask("rss_overuse", enabled=False, **asked)["soft_victims"] == []


def test_only_pods_with_all_labels_are_looked_at_and_they_are_named_by_name() -> None:
    pods = [resident(n, (1, 9), labels={"a": "1", "b": v}) for n, v in (("z", "2"), ("y", "2"), ("x", "3"))]
    asked = {"enabled": True, "default_threshold_ratio": 1, "pods": pods}
    assert ask("rss_overuse", **asked, label_filter={"a": "1", "b": "2"})["soft_victims"] == ["y", "z"]
    assert ask("rss_overuse", **asked, label_filter={"c": ""})["soft_victims"] == []
