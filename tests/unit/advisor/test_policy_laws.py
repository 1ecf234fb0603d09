"""Laws that every policy of the folder holds to; a new file there is tested without a change here."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.model.figures import Figures, NodeMemory, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.registry import known_policies
from shared.contracts.pod import QosClass

POLICIES: Mapping[str, Any] = known_policies()
every_policy = pytest.mark.parametrize("name", POLICIES)

GIB = 1 << 30
cores = st.none() | st.floats(0, 64)
sizes = st.none() | st.integers(0, 64 * GIB)
figures = st.builds(Figures, cores, cores, cores)
containers = st.lists(
    st.builds(
        ContainerView,
        pod=st.sampled_from(["default/a", "default/b", "batch/c"]),
        uid=st.uuids().map(str),
        name=st.sampled_from(["main", "side"]),
        qos=st.sampled_from(get_args(QosClass)),
        request_cores=st.floats(0, 16),
        request_bytes=st.integers(0, 16 * GIB),
        cpu=figures,
        memory=st.builds(Resident, sizes, sizes),
    ),
    max_size=8,
)
bounds = st.builds(Bounds.of, st.integers(1, 128), smt=st.booleans(), reserve_pool_cpus=st.integers(0, 8))
memories = st.builds(
    NodeMemory,
    total_bytes=st.none() | st.integers(GIB, 512 * GIB),
    available_bytes=sizes,
    reclaimed_used_bytes=sizes,
    watermark_scale_factor=st.none() | st.integers(1, 1000),
)
views = st.builds(lambda b, c, m: View(b, tuple(c), m), bounds, containers, memories)


def advise(name: str, view: View, now_s: float = 0.0, last: Round | None = None) -> Round:
    policy = POLICIES[name]
    return decide(view, now_s, ConfiguredPolicy(policy, policy.settings()), SizingRules(), last)


def test_the_folder_holds_the_default_policy_under_its_files_name() -> None:
    assert "canonical" in POLICIES
    assert all(policy.name == name for name, policy in POLICIES.items())


@every_policy
@given(view=views)
def test_a_policy_never_leaves_the_bounds_of_the_machine(name: str, view: View) -> None:
    fields = advise(name, view).fields()
    share, reclaim, reserve = (pool.cpus for pool in fields["pools"])
    assert view.bounds.min_share_cpus <= share <= view.bounds.cpus
    assert 1 <= reclaim <= view.bounds.cpus
    assert 0 <= fields["reclaimed_cpu_millis"] <= reclaim * 1000
    assert fields["reclaimed_memory_bytes"] <= (view.memory.total_bytes or 0)
    if not fields["overlap"]:
        assert share + reclaim + reserve == view.bounds.cpus
        assert share >= min(view.bounds.reserve_cores, view.bounds.max_share_cpus - 1)


@every_policy
@given(view=views, random=st.randoms())
def test_a_policy_decides_the_same_in_every_order_of_the_containers(name: str, view: View, random: Random) -> None:
    shuffled = replace(view, containers=tuple(random.sample(view.containers, len(view.containers))))
    assert advise(name, shuffled).fields() == advise(name, view).fields()


@every_policy
@given(view=views, data=st.data())
def test_more_load_never_gives_tenants_less(name: str, view: View, data: st.DataObject) -> None:
    tenants = [i for i, c in enumerate(view.containers) if c.cpu.usage_cores]
    if not tenants:
        return
    index = data.draw(st.sampled_from(tenants))
    before = view.containers[index]
    busier = Figures(present(before.cpu.usage_cores) + data.draw(st.floats(0, 32)), before.cpu.load1, before.cpu.load5)
    changed = list(view.containers)
    changed[index] = replace(before, cpu=busier)
    less, more = advise(name, view), advise(name, replace(view, containers=tuple(changed)))
    assert more.sizes.share_cpus >= less.sizes.share_cpus
    assert more.sizes.reclaimed_cpu_millis <= less.sizes.reclaimed_cpu_millis


@every_policy
@given(view=views, newcomer=containers)
def test_a_further_container_never_gives_tenants_less(name: str, view: View, newcomer: list[ContainerView]) -> None:
    less, more = advise(name, view), advise(name, replace(view, containers=(*view.containers, *newcomer)))
    assert more.sizes.share_cpus >= less.sizes.share_cpus
    assert more.reclaimed_memory_bytes <= less.reclaimed_memory_bytes


@every_policy
@given(view=views, asked=st.floats(0.1, 16), load=cores)
def test_a_tenant_whose_use_is_not_known_counts_at_least_its_request(
    name: str, view: View, asked: float, load: float | None
) -> None:
    """A load average that is there already says little of a container that has just begun."""
    unknown = ContainerView(
        "default/new", "aa", "main", "shared_cores", asked, GIB, Figures(None, load, None), Resident()
    )
    more = advise(name, replace(view, containers=(*view.containers, unknown)))
    assert more.demand.cores - advise(name, view).demand.cores >= asked - 1e-6


@every_policy
@given(view=views, now_s=st.floats(0, 1000))
def test_a_view_without_figures_takes_nothing_from_tenants_and_offers_no_more(
    name: str, view: View, now_s: float
) -> None:
    last = advise(name, view)
    blind = advise(name, view.blind(), now_s, last)
    assert blind.sizes.share_cpus >= last.sizes.share_cpus
    assert blind.sizes.reclaimed_cpu_millis <= last.sizes.reclaimed_cpu_millis
    assert blind.reclaimed_memory_bytes <= last.reclaimed_memory_bytes
    assert blind.memory_limit_bytes is None


@every_policy
@given(view=views)
def test_missing_memory_figures_never_raise_the_offer_or_set_a_limit(name: str, view: View) -> None:
    last = advise(name, view)
    unknown = advise(name, replace(view, memory=NodeMemory()), 1.0, last)
    assert unknown.reclaimed_memory_bytes <= last.reclaimed_memory_bytes
    assert unknown.memory_limit_bytes is None


@every_policy
@given(view=views)
def test_every_decision_says_why(name: str, view: View) -> None:
    assert all(reason.rule and reason.numbers for reason in advise(name, view).why)
