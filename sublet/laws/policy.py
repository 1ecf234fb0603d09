"""Laws that every sizing policy holds, over views of nodes that hypothesis makes up."""

from dataclasses import replace
from random import Random
from typing import Any, get_args

from hypothesis import strategies as st

from services.advisor.core.model.figures import Figures, NodeMemory, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, Signs, View
from services.advisor.core.policy import Policy
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from shared.contracts.pod import QosClass
from sublet.laws.law import Law, law_of

AnyPolicy = Policy[Any, Any]

LAWS: dict[str, Law[AnyPolicy]] = {}
"""The laws, each by the sentence that it is."""
_law = law_of(LAWS)

_GIB = 1 << 30
_cores = st.none() | st.floats(0, 64)
_sizes = st.none() | st.integers(0, 64 * _GIB)
_containers = st.lists(
    st.builds(
        ContainerView,
        pod=st.sampled_from(["default/a", "default/b", "batch/c"]),
        uid=st.uuids().map(str),
        name=st.sampled_from(["main", "side"]),
        qos=st.sampled_from(get_args(QosClass)),
        request_cores=st.floats(0, 16),
        request_bytes=st.integers(0, 16 * _GIB),
        cpu=st.builds(Figures, _cores, _cores, _cores),
        memory=st.builds(Resident, _sizes, _sizes),
    ),
    max_size=8,
)
_bounds = st.builds(Bounds.of, st.integers(1, 128), smt=st.booleans(), reserve_pool_cpus=st.integers(0, 8))
_memories = st.builds(
    NodeMemory,
    total_bytes=st.none() | st.integers(_GIB, 512 * _GIB),
    available_bytes=_sizes,
    reclaimed_used_bytes=_sizes,
    watermark_scale_factor=st.none() | st.integers(1, 1000),
)
_views = st.builds(
    lambda bounds, containers, memory: View(bounds, tuple(containers), memory), _bounds, _containers, _memories
)


def _advise(policy: AnyPolicy, view: View, now_s: float = 0.0, last: Round | None = None) -> Round:
    return decide(view, now_s, ConfiguredPolicy(policy, policy.settings()), SizingRules(), last)


@_law(view=_views)
def the_advice_stays_within_the_machine(policy: AnyPolicy, view: View) -> None:
    """Pools and offer fit, and a pool keeps what it must have at least."""
    fields = _advise(policy, view).fields()
    share, reclaim, reserve = (pool.cpus for pool in fields["pools"])
    assert view.bounds.min_share_cpus <= share <= view.bounds.cpus
    assert 1 <= reclaim <= view.bounds.cpus
    assert 0 <= fields["reclaimed_cpu_millis"] <= reclaim * 1000
    assert fields["reclaimed_memory_bytes"] <= (view.memory.total_bytes or 0)
    if not fields["overlap"]:
        assert share + reclaim + reserve == view.bounds.cpus
        assert share >= min(view.bounds.reserve_cores, view.bounds.max_share_cpus - 1)


@_law(view=_views, random=st.randoms())
def the_order_of_containers_means_nothing(policy: AnyPolicy, view: View, random: Random) -> None:
    """Kubelet lists pods in any order."""
    shuffled = replace(view, containers=tuple(random.sample(view.containers, len(view.containers))))
    assert _advise(policy, shuffled).fields() == _advise(policy, view).fields()


@_law(view=_views, more_cores=st.floats(0, 32), pick=st.integers(0, 7))
def more_load_never_gives_tenants_less(policy: AnyPolicy, view: View, more_cores: float, pick: int) -> None:
    """One container becomes busier, and nothing else changes."""
    measured = [index for index, container in enumerate(view.containers) if container.cpu.usage_cores]
    if not measured:
        return
    index = measured[pick % len(measured)]
    before = view.containers[index]
    busier = Figures((before.cpu.usage_cores or 0.0) + more_cores, before.cpu.load1, before.cpu.load5)
    changed = list(view.containers)
    changed[index] = replace(before, cpu=busier)
    less, more = _advise(policy, view), _advise(policy, replace(view, containers=tuple(changed)))
    assert more.sizes.share_cpus >= less.sizes.share_cpus
    assert more.sizes.reclaimed_cpu_millis <= less.sizes.reclaimed_cpu_millis


@_law(view=_views, waiting=st.floats(0, 1e9), more_tasks=st.floats(0, 64))
def tenants_that_wait_for_a_cpu_never_get_less(
    policy: AnyPolicy, view: View, waiting: float, more_tasks: float
) -> None:
    """Use alone does not show who is squeezed; a figure beyond the machine counts as the machine."""
    less = _advise(policy, replace(view, signs=Signs(waiting)))
    more = _advise(policy, replace(view, signs=Signs(waiting + more_tasks)))
    assert more.sizes.share_cpus >= less.sizes.share_cpus
    assert more.sizes.reclaimed_cpu_millis <= less.sizes.reclaimed_cpu_millis
    if any(container.cpu.usage_cores is not None for container in view.of("shared_cores")):
        assert more.demand.cores >= min(waiting + more_tasks, view.bounds.cpus) - 1e-6


@_law(view=_views, newcomers=_containers)
def a_further_container_never_gives_tenants_less(policy: AnyPolicy, view: View, newcomers: list[ContainerView]) -> None:
    """Containers come, and those that are there stay as they are."""
    less, more = _advise(policy, view), _advise(policy, replace(view, containers=(*view.containers, *newcomers)))
    assert more.sizes.share_cpus >= less.sizes.share_cpus
    assert more.reclaimed_memory_bytes <= less.reclaimed_memory_bytes


@_law(view=_views, asked=st.floats(0.1, 16), load=_cores)
def a_tenant_whose_use_is_not_known_counts_at_least_its_request(
    policy: AnyPolicy, view: View, asked: float, load: float | None
) -> None:
    """A load average that is there already says little of a container that has just begun."""
    unknown = ContainerView(
        "default/new", "aa", "main", "shared_cores", asked, _GIB, Figures(None, load, None), Resident()
    )
    more = _advise(policy, replace(view, containers=(*view.containers, unknown)))
    assert more.demand.cores - _advise(policy, view).demand.cores >= asked - 1e-6


@_law(view=_views, now_s=st.floats(0, 1000))
def a_view_without_figures_takes_nothing_and_offers_no_more(policy: AnyPolicy, view: View, now_s: float) -> None:
    """Samples have stopped; silence is no idleness."""
    last = _advise(policy, view)
    blind = _advise(policy, view.blind(), now_s, last)
    assert blind.sizes.share_cpus >= last.sizes.share_cpus
    assert blind.sizes.reclaimed_cpu_millis <= last.sizes.reclaimed_cpu_millis
    assert blind.reclaimed_memory_bytes <= last.reclaimed_memory_bytes
    assert blind.memory_limit_bytes is None


@_law(view=_views)
def missing_memory_figures_never_raise_the_offer_or_set_a_limit(policy: AnyPolicy, view: View) -> None:
    """The node's memory cannot be read any more."""
    last = _advise(policy, view)
    unknown = _advise(policy, replace(view, memory=NodeMemory()), 1.0, last)
    assert unknown.reclaimed_memory_bytes <= last.reclaimed_memory_bytes
    assert unknown.memory_limit_bytes is None


@_law(view=_views)
def every_decision_says_why(policy: AnyPolicy, view: View) -> None:
    """`sublet explain` shows the rule and its numbers."""
    assert all(reason.rule and reason.numbers for reason in _advise(policy, view).why)
