"""Reserve and pace: common, or the policy's own; what stays common whatever the policy owns."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from shared.core.cgroups.layout import SHARE

BIG = Bounds.of(48, smt=True)
SMALL = Bounds.of(2, smt=True, reserve_cores=0.25)
COMMON = Policy(
    "need", PolicySettings, lambda: None, lambda _state, view, _now_s, _settings: (None, Demand(_need(view), 0))
)
"""Tenants need what the node uses."""
OWN = replace(COMMON, reserve="own", pace="own")
ADDING = replace(
    OWN,
    judge=lambda _state, view, _now_s, _settings: (None, Demand(_need(view) + view.region_reserve_cores, 0)),
)
"""The same, and it adds the common reserve itself."""


def _need(view: View) -> float:
    if view.region != SHARE:
        return 2.0
    return present(view.node_usage_cores)


def round_of(policy: Policy[Any, Any], view: View, now_s: float = 0.0, last: Round | None = None) -> Round:
    return decide(view, now_s, ConfiguredPolicy(policy, PolicySettings()), SizingRules(), last)


def view_of(bounds: Bounds, need: float, *containers: ContainerView, fresh: bool = True) -> View:
    return View(bounds, containers, node_usage_cores=need, fresh=fresh)


def container(pod: str, pool: str) -> ContainerView:
    return ContainerView(pod, pod, "main", "shared_cores", 2.0, 0, Figures(1.0), Resident(), pool=pool)


def test_nothing_is_added_to_the_demand_of_a_policy_that_owns_its_reserve() -> None:
    assert round_of(COMMON, view_of(BIG, 10)).sizes.share_cpus == 14
    done = round_of(OWN, view_of(BIG, 10))
    assert done.sizes.share_cpus == 10
    assert done.sizes.why[0].numbers["reserve_cores"] == 0


def test_where_pools_overlap_nothing_is_added_either() -> None:
    assert round_of(COMMON, view_of(SMALL, 1)).sizes.reclaimed_cpu_millis == 1000
    assert round_of(OWN, view_of(SMALL, 0.5)).sizes.reclaimed_cpu_millis == 1500


def test_a_region_of_its_own_gets_nothing_either() -> None:
    view = view_of(BIG, 10, container("default/a", SHARE), container("default/b", "gold"))
    for policy, cpus in ((COMMON, 4), (OWN, 4)):
        done = round_of(policy, view)
        assert {pool.pool: pool.cpus for pool in done.own_pools} == {"gold": cpus}, "the floor of a pool is 4 CPUs"
    wanted = [reason for reason in round_of(OWN, view).why if reason.rule == "region gold"]
    assert wanted[0].numbers["wanted_cores"] == 2, "2 cores of demand and no reserve"


@given(need=st.floats(0, 60), cpus=st.integers(1, 128), smt=st.booleans())
def test_a_policy_that_adds_the_common_reserve_itself_gets_the_common_sizes(need: float, cpus: int, smt: bool) -> None:
    view = view_of(Bounds.of(cpus, smt=smt), need)
    ours, common = round_of(ADDING, view).sizes, round_of(COMMON, view).sizes
    assert (ours.share_cpus, ours.reclaim_cpus) == (common.share_cpus, common.reclaim_cpus)
    assert ours.reclaimed_cpu_millis == common.reclaimed_cpu_millis


@pytest.mark.parametrize(("policy", "share"), [(COMMON, 32), (OWN, 10)], ids=["common", "own"])
def test_a_smaller_demand_is_followed_at_the_pace_that_holds(policy: Policy[Any, Any], share: int) -> None:
    first = round_of(policy, view_of(BIG, 30), 0.0)
    assert round_of(policy, view_of(BIG, 10), 2.0, first).sizes.share_cpus == share


def test_a_wait_of_the_common_pace_does_not_bind_a_policy_that_owns_its_own() -> None:
    last = None
    for now_s, need in ((0, 30), (1, 10), (2, 34), (3, 10)):
        last = round_of(COMMON, view_of(BIG, need), now_s, last)
    assert last is not None
    assert last.sizes.ramp.wait_s > 0, "a step down has been taken back"
    assert round_of(OWN, view_of(BIG, 10), 4.0, last).sizes.share_cpus == 10


@pytest.mark.parametrize("policy", [COMMON, OWN], ids=["common", "own"])
def test_floors_even_sizes_and_stale_views_stay_common(policy: Policy[Any, Any]) -> None:
    assert round_of(policy, view_of(BIG, 0)).sizes.share_cpus == 4, "the floor of the tenants"
    assert round_of(policy, view_of(BIG, 99)).sizes.reclaim_cpus == 4, "the floor of reclaimed pods"
    assert round_of(policy, view_of(BIG, 10.5)).sizes.share_cpus % 2 == 0
    first = round_of(policy, view_of(BIG, 30))
    blind = round_of(policy, view_of(BIG, 0, fresh=False), 100.0, first)
    assert blind.sizes.share_cpus == first.sizes.share_cpus, "a view that is not fresh takes nothing from tenants"


def test_where_it_fails_the_other_policy_has_the_common_reserve_and_pace() -> None:
    def broken(_state: None, _view: View, _now_s: float, _settings: PolicySettings) -> tuple[None, Demand]:
        raise ZeroDivisionError

    rules = SizingRules(fallback=ConfiguredPolicy(COMMON, PolicySettings()))
    failing = replace(OWN, name="failing", judge=broken)
    first = decide(view_of(BIG, 30), 0.0, ConfiguredPolicy(failing, PolicySettings()), rules, None)
    assert first.sizes.share_cpus == 34
    again = decide(view_of(BIG, 10), 1.0, ConfiguredPolicy(failing, PolicySettings()), rules, first)
    assert again.sizes.share_cpus == 32


@pytest.mark.parametrize("field", ["reserve", "pace"])
def test_an_owner_that_is_none_is_refused_by_name(field: str) -> None:
    wrong: dict[str, Any] = {field: "mine"}
    with pytest.raises(ValueError, match=rf"policy 'need': {field}='mine'; want one of common, own"):
        replace(COMMON, **wrong)
