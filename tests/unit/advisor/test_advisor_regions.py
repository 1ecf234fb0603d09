"""The node by regions: who is where, what each one gets, and how sizes move over time."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from present import present

from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.core.sizing.isolation import IsolationRules
from services.advisor.policies import canonical

GIB = 1 << 30
BIG = Bounds.of(48, smt=True)
NODES = ((0, 24), (1, 24))


def tenant(name: str, usage: float | None = 1.0, **over: Any) -> ContainerView:
    fields: dict[str, Any] = {
        "pod": f"default/{name}", "uid": name, "name": "main", "qos": "shared_cores", "request_cores": 2.0,
        "request_bytes": GIB, "cpu": Figures(usage), "memory": Resident(GIB),
    }  # fmt: skip
    return ContainerView(**fields | over)


def dedicated(name: str, cpus: int, numa: int, **over: Any) -> ContainerView:
    return tenant(name, qos="dedicated_cores", request_cores=float(cpus), dedicated=True, bound=True,
                  cpus_per_numa=((numa, cpus),), **over)  # fmt: skip


def advise(*containers: ContainerView, last: Round | None = None, now_s: float = 0.0, rules: SizingRules | None = None,
           **view: Any) -> Round:  # fmt: skip
    seen = View(BIG, containers, numas=NODES, **view)
    return decide(
        seen, now_s, ConfiguredPolicy(canonical.POLICY, canonical.CanonicalSettings()), rules or SizingRules(), last
    )


def sizes(done: Round) -> dict[str, int]:
    return {f"{p.pool}@{p.numa}" if p.numa >= 0 else p.pool: p.cpus for p in done.fields()["pools"]}


def test_one_share_pool_is_sized_as_ever() -> None:
    assert sizes(advise(tenant("a"))) == {"share": 6, "reclaim": 42, "reserve": 0}


def test_a_dedicated_pod_with_cpus_of_its_own_is_not_counted_in_the_share_pool() -> None:
    done = advise(tenant("a"), dedicated("db", 8, 1))
    assert sizes(done) == {"share": 6, "reclaim": 34, "reserve": 0, "dedicated@1": 8}
    assert done.demand.memory_bytes == 2 * round(1.1 * GIB + 0.5)


def test_one_that_did_not_get_any_runs_in_the_share_pool_and_counts_there() -> None:
    homeless = tenant("db", qos="dedicated_cores", request_cores=8.0)
    assert sizes(advise(tenant("a"), homeless)) == {"share": 14, "reclaim": 34, "reserve": 0}


def test_where_a_dedicated_pod_has_not_been_placed_yet_its_request_is_kept_free() -> None:
    done = advise(tenant("a"), replace(dedicated("db", 8, 1), cpus_per_numa=()))
    assert sizes(done) == {"share": 6, "reclaim": 34, "reserve": 0}


def test_a_named_pool_has_a_size_of_its_own_and_half_of_the_reserve() -> None:
    done = advise(tenant("a", 6.0), tenant("b", 2.0, pool="batch"))
    assert sizes(done) == {"share": 10, "batch": 6, "reclaim": 32, "reserve": 0}
    assert any(reason.rule == "region batch" and reason.numbers["size"] == 6 for reason in done.why)
    assert {p.pool for p in done.fields()["pools"] if p.of_pods} == {"batch"}


def test_a_bound_pool_is_sized_on_its_node_and_never_beyond_it() -> None:
    bound = tenant("b", 2.0, pool="share-NUMA1", bound=True, cpus_per_numa=((1, 8),))
    assert sizes(advise(tenant("a"), bound)) == {"share": 6, "share-NUMA1@1": 4, "reclaim": 38, "reserve": 0}
    busy = replace(bound, cpu=Figures(90.0))
    assert sizes(advise(tenant("a"), busy))["share-NUMA1@1"] == 22


def test_what_a_bound_pool_leaves_of_its_node_is_for_everybody() -> None:
    bound = tenant("b", 2.0, pool="share-NUMA1", bound=True, cpus_per_numa=((1, 8),))
    done = sizes(advise(tenant("a", 30.0), bound))
    assert done == {"share": 40, "share-NUMA1@1": 4, "reclaim": 4, "reserve": 0}


def test_bound_pools_of_one_node_divide_it() -> None:
    near = [tenant(name, 20.0, pool=f"{name}-NUMA1", bound=True, cpus_per_numa=((1, 8),)) for name in ("red", "blue")]
    done = sizes(advise(*near))
    assert done["red-NUMA1@1"] + done["blue-NUMA1@1"] == 22
    assert done["share"] + done["reclaim"] == 26


def test_a_node_that_the_sample_does_not_know_binds_nobody() -> None:
    bound = tenant("b", 2.0, pool="share-NUMA7", bound=True, cpus_per_numa=((7, 8),))
    assert sizes(advise(tenant("a"), bound))["share-NUMA7"] == 6


def test_the_usage_of_other_regions_is_not_counted_in_the_share_pool_again() -> None:
    done = advise(tenant("a", 1.0), tenant("b", 10.0, pool="batch"), tenants_usage_cores=11.0)
    assert sizes(done)["share"] == 4
    done = advise(tenant("a", 1.0), tenant("b", 10.0, pool="batch"), tenants_usage_cores=15.0)
    assert sizes(done)["share"] == 10


def test_each_region_has_a_state_of_its_own() -> None:
    def judge(state: int, view: View, _now_s: float, _settings: PolicySettings) -> tuple[int, Demand]:
        return state + len(view.containers), Demand(float(state), 0)

    counting = Policy("counting", PolicySettings, lambda: 0, judge)
    view = View(BIG, (tenant("a"), tenant("b", pool="batch"), tenant("c", pool="batch")))
    last: Round | None = None
    for now_s in range(3):
        last = decide(view, now_s, ConfiguredPolicy(counting, PolicySettings()), SizingRules(), last)
    assert last is not None
    assert (last.policy_state, last.region_states) == (3, {"batch": 6})


NOISY = SizingRules(isolation=IsolationRules(lock_in_threshold=1, max_resource_ratio=1.0, lock_out_s=60))


def test_noisy_pods_are_isolated_only_where_that_is_asked_for() -> None:
    quiet, noisy = tenant("a", runnable=1), tenant("b", runnable=40, limit_cores=8.0)
    assert "isolation-default.b" not in sizes(advise(quiet, noisy))
    done = advise(quiet, noisy, rules=NOISY)
    assert sizes(done) == {"share": 6, "isolation-default.b": 8, "reclaim": 34, "reserve": 0}
    assert any(reason.rule == "isolated isolation-default.b" for reason in done.why)
    calm = [tenant("a", runnable=1), tenant("b", runnable=0, limit_cores=8.0)]
    done = advise(*calm, rules=NOISY, last=done, now_s=1)
    assert "isolation-default.b" in sizes(done)
    assert "isolation-default.b" not in sizes(advise(*calm, rules=NOISY, last=done, now_s=61))


def test_blind_the_isolated_stay_and_nobody_shrinks() -> None:
    containers = tenant("a", 9.0, runnable=1), tenant("b", runnable=40, limit_cores=8.0)
    done = advise(*containers, rules=NOISY)
    blind = View(BIG, containers, numas=NODES).blind()
    after = decide(blind, 100.0, ConfiguredPolicy(canonical.POLICY, canonical.CanonicalSettings()), NOISY, done)
    assert sizes(after) == sizes(done)


containers = st.lists(
    st.builds(
        tenant,
        st.sampled_from("abcdefgh"),
        st.none() | st.floats(0, 40),
        pool=st.sampled_from(["share", "batch", "share-NUMA0", "share-NUMA1"]),
        request_cores=st.floats(0, 8),
    ).map(lambda c: replace(c, bound=True, cpus_per_numa=((int(c.pool[-1]), 4),)) if "NUMA" in c.pool else c)
    | st.builds(dedicated, st.sampled_from("uvwxyz"), st.integers(1, 12), st.integers(0, 1)),
    max_size=8,
    unique_by=lambda c: c.uid,
)


@given(containers, st.randoms())
def test_the_order_of_containers_means_nothing(found: list[ContainerView], order: Random) -> None:
    shuffled = order.sample(found, len(found))
    assert advise(*shuffled).fields() == advise(*found).fields()


@given(containers)
def test_every_cpu_is_in_one_pool_and_reclaimed_work_keeps_some_where_there_is_any(found: list[ContainerView]) -> None:
    done = advise(*found)
    had = sum(cpus for c in found if c.dedicated for _, cpus in c.cpus_per_numa)
    pools = sizes(done)
    if all(sum(cpus for c in found if c.dedicated for n, cpus in c.cpus_per_numa if n == k) <= 20 for k, _ in NODES):
        assert sum(pools.values()) == 48 or had > 40
        assert pools["reclaim"] >= 1


@given(containers)
def test_no_core_is_split_between_pools_unless_dedicated_pods_have_split_one(found: list[ContainerView]) -> None:
    whole = [replace(c, cpus_per_numa=tuple((n, cpus // 4 * 2) for n, cpus in c.cpus_per_numa)) for c in found]
    left = [
        24 - sum(cpus for c in whole if c.dedicated for n, cpus in c.cpus_per_numa if n == numa) for numa, _ in NODES
    ]
    if min(left) >= 8:  # where nearly nothing is left, even that little is divided
        assert all(cpus % 2 == 0 for pool, cpus in sizes(advise(*whole)).items())


@given(containers, st.lists(st.floats(0, 40), min_size=8, max_size=8))
def test_growth_is_never_limited_by_a_step(found: list[ContainerView], later: list[float]) -> None:
    """What a region gets from one round to the next is what it would get as a beginner, unless that is less."""
    busier = [
        c if c.dedicated else replace(c, cpu=Figures((c.cpu.usage_cores or 0.0) + more))
        for c, more in zip(found, later, strict=False)
    ]
    before = advise(*found)
    grown, fresh = advise(*busier, last=before, now_s=1), advise(*busier)
    for name, one in present(fresh.provision).regulated.items():
        assert present(grown.provision).regulated[name].ramp.size >= one.ramp.size


def story(load: Callable[[int], float], seconds: int) -> list[tuple[int, int]]:
    """The share pool's size each second."""
    last, sizes_over_time = None, []
    for second in range(seconds):
        usage = load(second)
        last = advise(tenant("web", usage), last=last, now_s=float(second), tenants_usage_cores=usage)
        sizes_over_time.append((second, last.sizes.share_cpus))
    return sizes_over_time


def test_from_8_to_the_whole_machine_takes_one_round_and_back_takes_minutes() -> None:
    sizes_over_time = dict(story(lambda second: 48.0 if second == 10 else 3.0, 700))
    assert (sizes_over_time[9], sizes_over_time[10]) == (8, 44)
    assert sizes_over_time[11] == 42
    back = min(second for second, size in sizes_over_time.items() if second > 10 and size == 8)
    assert back - 10 <= 9 * 60


@pytest.mark.parametrize("noise", [0.3, 1.0, 3.0, 8.0])
@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 10_000))
def test_a_load_that_only_swings_moves_the_pool_ever_more_rarely(noise: float, seed: int) -> None:
    chance, seconds = random.Random(seed), 600
    sizes_over_time = story(lambda _: max(0.1, 12.0 + chance.uniform(-noise, noise)), seconds)
    moves = [(second, after - before) for (_, before), (second, after) in pairwise(sizes_over_time) if after != before]
    falls = [second for second, change in moves if change < 0]
    assert all(later - earlier >= 30 for earlier, later in pairwise(falls))
    assert all(change >= -2 for _, change in moves)
    assert all(size % 2 == 0 for _, size in sizes_over_time)
    assert len(falls) <= 4 + seconds // 120  # every 30 s it would be 20


@given(level=st.floats(1, 20), seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=6)
def test_a_load_that_is_gone_is_followed_within_minutes_whatever_was_before(level: float, seed: int) -> None:
    chance = random.Random(seed)
    swinging = lambda second: max(0.1, 20 + chance.uniform(-4, 4)) if second < 300 else level  # noqa: E731
    sizes_over_time = story(swinging, 1300)
    assert sizes_over_time[-1][1] == advise(tenant("web", level)).sizes.share_cpus
