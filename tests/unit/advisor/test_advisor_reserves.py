"""What NUMA nodes keep back, the reserve of a region, and the quota of reclaimed pods on a node."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.demand.quota import reclaim_quota_cores
from services.advisor.core.sizing.reserves import kept_for_reclaim, reserve_of_region
from services.advisor.whatif.cpu.quota import QuotaQuestion, provision_dynamic_quota
from shared.errors import Refused


@pytest.mark.parametrize(
    ("cpus", "reserved", "ratio", "kept"),
    [
        pytest.param({0: 8, 1: 8}, 4, None, {0: 2, 1: 2}, id="4 over 2 nodes"),
        pytest.param({0: 8, 1: 8}, 99, None, {0: 8, 1: 8}, id="at most all"),
        pytest.param(dict.fromkeys(range(8), 2), 4, None, dict.fromkeys(range(8), 1), id="at least one each"),
        pytest.param({0: 8, 1: 8}, 5, None, {0: 2, 1: 2}, id="the same on every node"),
        pytest.param({0: 32, 1: 32}, 0, 0.05, {0: 2, 1: 2}, id="a part of each node"),
        pytest.param({0: 100}, 1, 0.07, {0: 7}, id="0.07 x 100 is 7"),
        pytest.param({3: 4, 5: 12}, 4, 0.5, {3: 2, 5: 6}, id="nodes by id, not by index"),
        pytest.param({}, 4, None, {}, id="no node"),
    ],
)
def test_every_numa_node_keeps_some_cpus_for_reclaimed_pods(
    cpus: dict[int, int], reserved: int, ratio: float | None, kept: dict[int, int]
) -> None:
    assert kept_for_reclaim(cpus, reserved, ratio) == kept


@given(st.lists(st.integers(1, 64), min_size=1, max_size=8), st.integers(0, 600))
def test_together_the_nodes_keep_no_more_than_asked_and_each_at_least_one(sizes: list[int], reserved: int) -> None:
    kept = kept_for_reclaim(dict(enumerate(sizes)), reserved)
    assert min(kept.values()) >= 1
    assert sum(kept.values()) <= max(reserved, len(sizes))


def test_share_regions_divide_the_reserve_of_their_nodes() -> None:
    assert reserve_of_region(4, (0, 1), (0, 1), {0: 1, 1: 1}) == 4
    assert reserve_of_region(4, (0, 1), (0, 1), {0: 2, 1: 2}) == 2
    assert reserve_of_region(4, (0,), (0, 1), {0: 1, 1: 5}) == 2
    assert reserve_of_region(4, (0,), (0, 1), {}) == 2


@pytest.mark.parametrize(
    ("cpus", "target", "current", "usage", "floor", "quota"),
    [
        pytest.param(4, 0.6, 0.4, 2.0, 1.0, 2.8, id="room: more than now"),
        pytest.param(4, 0.6, 0.8, 2.0, 1.0, 1.2, id="too busy: less than now"),
        pytest.param(4, 0.6, 1.0, 0.5, 1.0, 1.0, id="never below the floor"),
    ],
)
def test_the_quota_steers_the_usage_to_its_target(
    cpus: int, target: float, current: float, usage: float, floor: float, quota: float
) -> None:
    assert reclaim_quota_cores(cpus, target, current, usage, floor) == pytest.approx(quota)


@pytest.mark.parametrize(
    ("cpus", "current", "usage", "reason"),
    [(4, 0.4, None, "missing_metric"), (4, None, 1.0, "missing_metric"), (0, 0.4, 1.0, "no_cpus"),
     (None, 0.4, 1.0, "no_cpus")],
)  # fmt: skip
def test_without_figures_there_is_no_quota(
    cpus: int | None, current: float | None, usage: float | None, reason: str
) -> None:
    with pytest.raises(Refused) as refusal:
        reclaim_quota_cores(cpus, 0.6, current, usage, 1.0)
    assert refusal.value.reason == reason


def test_without_a_reclaimed_pool_the_whole_node_counts_and_unbound_regions_have_no_quota() -> None:
    asked = {"target_usage_ratio": 0.5, "current_usage_ratio": 0.25, "reclaim_usage_cores": 1.0,
             "reserved_for_reclaim_cores": 1.0, "numa": 1, "numa_cpus": 8}  # fmt: skip

    def ask(**over: Any) -> float | None:
        return provision_dynamic_quota(QuotaQuestion.model_validate(asked | over)).reclaim_quota_cores

    assert ask(numa_binding=True) == 3.0
    assert ask(numa_binding=False) is None
    with pytest.raises(Refused, match="no CPU"):
        ask(numa_binding=True, reclaim_cpus_per_numa={0: 4})
