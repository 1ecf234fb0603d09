"""Sizes of the pools: the tutorial's figures, machines of every size, and laws."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.core.sizing.pools import PoolSizes
from services.advisor.whatif.cpu.pool_sizes import SeedQuestion, seed_pool_sizes

machines = st.builds(
    Bounds.of,
    st.integers(1, 512),
    smt=st.booleans(),
    reserve_cores=st.none() | st.floats(0, 100),
    reserve_pool_cpus=st.integers(0, 64),
)
needs = st.floats(0, 600)
NEED = Policy(
    "need",
    PolicySettings,
    lambda: 0,
    lambda state, view, _now_s, _settings: (state, Demand(present(view.node_usage_cores), 0)),
)
"""Tenants need what the node uses."""


def round_of(
    bounds: Bounds, need: float, now_s: float = 0.0, last: Round | None = None, *, fresh: bool = True
) -> Round:
    view = View(bounds, node_usage_cores=need, fresh=fresh)
    return decide(view, now_s, ConfiguredPolicy(NEED, PolicySettings()), SizingRules(), last)


def sizes_of(bounds: Bounds, need: float) -> PoolSizes:
    return round_of(bounds, need).sizes


@pytest.mark.parametrize(
    ("cpus", "smt", "need", "share", "reclaim", "overlap", "offer"),
    [
        pytest.param(48, True, 0, 4, 44, False, 44_000, id="48 idle"),
        pytest.param(48, True, 2, 6, 42, False, 42_000, id="48 with one pod by its request"),
        pytest.param(48, True, 1.25, 6, 42, False, 42_000, id="48 with one pod by its usage"),
        pytest.param(48, True, 3, 8, 40, False, 40_000, id="48 under load 3"),
        pytest.param(48, True, 100, 44, 4, False, 4000, id="48 overloaded"),
        pytest.param(48, False, 0.5, 5, 43, False, 43_000, id="48 without SMT"),
        pytest.param(8, False, 0, 2, 6, False, 6000, id="8 idle"),
        pytest.param(8, False, 99, 6, 2, False, 2000, id="8 overloaded"),
        pytest.param(4, False, 0, 1, 3, False, 3000, id="4 idle"),
        pytest.param(4, False, 99, 3, 1, False, 1000, id="4 overloaded"),
        pytest.param(4, True, 3, 4, 1, True, 1000, id="4 with SMT are 2 cores, too few for whole cores of their own"),
        pytest.param(8, True, 99, 6, 2, False, 2000, id="8 with SMT overloaded"),
        pytest.param(2, True, 0, 2, 2, True, 2000, id="2 idle"),
        pytest.param(2, True, 0.4, 2, 2, True, 1600, id="2 with a fraction of a CPU"),
        pytest.param(2, True, 1.1, 2, 1, True, 1000, id="2 with a whole CPU and more"),
        pytest.param(2, True, 2.5, 2, 1, True, 1000, id="2 overloaded"),
        pytest.param(1, False, 0.3, 1, 1, True, 1000, id="1"),
    ],
)
def test_the_sizes_of_a_machine(
    cpus: int, smt: bool, need: float, share: int, reclaim: int, overlap: bool, offer: int
) -> None:
    sizes = sizes_of(Bounds.of(cpus, smt=smt), need)
    assert (sizes.share_cpus, sizes.reclaim_cpus, sizes.reserve_cpus) == (share, reclaim, 0)
    assert (sizes.overlap, sizes.reclaimed_cpu_millis) == (overlap, offer)


@pytest.mark.parametrize(
    ("cpus", "reserve", "min_share"), [(1, 0, 0), (2, 0, 0), (4, 1, 1), (12, 3, 3), (16, 4, 4), (48, 4, 4)]
)
def test_the_automatic_reserve_is_a_quarter_of_a_small_machine_and_4_of_a_large_one(
    cpus: int, reserve: int, min_share: int
) -> None:
    bounds = Bounds.of(cpus, smt=False)
    assert (bounds.reserve_cores, bounds.min_share_cpus) == (reserve, min_share)


def test_a_reserve_pool_is_cut_out_only_where_both_other_pools_keep_room() -> None:
    assert Bounds.of(48, smt=True, reserve_pool_cpus=2).reserve_pool_cpus == 2
    assert sizes_of(Bounds.of(48, smt=True, reserve_pool_cpus=2), 0).reclaim_cpus == 42
    crowded = Bounds.of(8, smt=True, reserve_pool_cpus=6)
    assert (crowded.disjoint, crowded.reserve_pool_cpus) == (False, 0)


def test_tenants_grow_at_once_and_shrink_by_2_cpus_in_30_s_or_60_after_a_step_that_was_taken_back() -> None:
    bounds, last, story = Bounds.of(48, smt=True), None, []
    for now_s, need in [(0, 0), (1, 30), (2, 0), (3, 0), (31.9, 0), (32, 0), (33, 28), (40, 0), (62, 0), (92, 0)]:
        last = round_of(bounds, need, now_s, last)
        story.append(last.sizes.share_cpus)
    assert story == [4, 34, 32, 32, 32, 30, 32, 32, 32, 30]


def test_the_same_pace_holds_where_the_pools_overlap() -> None:
    bounds, last, story = Bounds.of(3, smt=False), None, []
    for now_s, need in [(0, 0.5), (1, 2.9), (2, 0.5), (3, 0.2), (33, 0.2)]:
        last = round_of(bounds, need, now_s, last)
        story.append((last.sizes.reclaim_cpus, last.sizes.reclaimed_cpu_millis))
    assert story == [(3, 2500), (1, 1000), (3, 2100), (3, 2100), (3, 2800)]


def test_without_leave_to_shrink_the_tenants_keep_what_they_have_and_may_grow() -> None:
    bounds = Bounds.of(48, smt=True)
    last = round_of(bounds, 20)
    assert round_of(bounds, 1, 100.0, last, fresh=False).sizes.share_cpus == 24
    assert round_of(bounds, 30, 100.0, last, fresh=False).sizes.share_cpus == 34


@given(machines, needs)
def test_tenants_get_what_they_need_up_to_the_bound_and_reclaimed_work_always_keeps_a_cpu(
    bounds: Bounds, need: float
) -> None:
    sizes = sizes_of(bounds, need)
    assert bounds.min_share_cpus <= sizes.share_cpus <= bounds.cpus
    assert 1 <= sizes.reclaim_cpus <= bounds.cpus
    assert 0 <= sizes.reclaimed_cpu_millis <= sizes.reclaim_cpus * 1000
    wanted = min(need + bounds.reserve_cores, bounds.max_share_cpus - (bounds.smt and bounds.max_share_cpus % 2))
    assert sizes.share_cpus >= wanted
    if not sizes.overlap:
        assert sizes.share_cpus + sizes.reclaim_cpus + sizes.reserve_cpus == bounds.cpus


@given(machines, needs, st.floats(0, 100))
def test_more_need_never_leaves_more_to_reclaimed_work(bounds: Bounds, need: float, more: float) -> None:
    less, greater = (sizes_of(bounds, n) for n in (need, need + more))
    assert greater.share_cpus >= less.share_cpus
    assert greater.reclaim_cpus <= less.reclaim_cpus
    assert greater.reclaimed_cpu_millis <= less.reclaimed_cpu_millis


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"estimates": []}, (4, 44, 44_000), id="idle"),
        pytest.param({"estimates": [], "rule": "v0.1.0"}, (4, 44, 44_000), id="idle in v0.1.0"),
        pytest.param({"estimates": [], "rule": "head"}, (0, 48, 48_000), id="idle in head: no pod, no reserve"),
        pytest.param({"estimates": [1.0], "rule": "v0.1.0"}, (6, 42, 42_000), id="one pod"),
        pytest.param({"estimates": [1.25, 1.75]}, (8, 40, 40_000), id="two containers"),
        pytest.param({"estimates": [99.0]}, (44, 4, 4000), id="overloaded"),
        pytest.param({"estimates": [1.0], "reserve_pool_cpus": 2}, (6, 40, 40_000), id="with a reserve pool"),
        pytest.param({"estimates": [99.0], "cpus": 47}, (42, 5, 5000), id="an odd machine, even share"),
        pytest.param({"estimates": [99.0], "cpus": 47, "rule": "head"}, (43, 4, 4000), id="an odd machine in head"),
        pytest.param({"estimates": [0.0], "min_share_cpus": 8}, (8, 40, 40_000), id="the smallest share"),
        pytest.param({"estimates": [0.5], "reserved_for_allocate_cores": 0.5}, (4, 44, 44_000), id="another reserve"),
    ],
)
def test_the_table_of_the_tutorial(fields: dict[str, Any], want: tuple[int, int, int]) -> None:
    estimates = fields.pop("estimates")
    answer = seed_pool_sizes(SeedQuestion.model_validate({"cpus": 48, "shared_estimates_cores": estimates} | fields))
    assert (answer.share_cpus, answer.reclaim_cpus, answer.reported_reclaimed_millicpu) == want
