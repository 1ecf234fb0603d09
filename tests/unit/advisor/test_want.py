"""Tenants that cannot get CPU are seen wanting it: what counts as waiting for CPUs, and what never does."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.demand.want import wanting
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import View
from services.advisor.core.model.wait import NO_QUOTA, Quota, stolen_ratio, wait_of
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.policy import Demand
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.registry import known_policies
from shared.contracts.sample import ContainerReading, NodeSample, Pressure
from sublet.replay.traces.frames import sample_of

MACHINE = Bounds.of(16, smt=False)
POLICIES: Mapping[str, Any] = known_policies()
cores = st.floats(0, 64)
ratios = st.floats(0, 1)
quotas = st.builds(Quota, st.just(0.0) | st.floats(0.1, 64), cores)


def sample(
    usage: float = 1.0, waiting: float | None = 0.0, limit_millis: int = 0, steal: float | None = None, **over: Any
) -> NodeSample:
    """One tenant on a node of 16 CPUs."""
    main = {"name": "main", "cpu_usage_cores": usage, "sched_wait_tasks": waiting, **over}
    asked = [{"name": "main", "cpu_request_millis": 1000, "cpu_limit_millis": limit_millis}]
    pod = {"uid": "aa", "namespace": "shop", "name": "web", "containers": asked}
    fields = {
        "window_s": 2.0,
        "node_reading": {"online_cpus": "0-15", "cpu_usage_cores": usage, "cpu_steal_cores": steal},
        "pools": [{"pool": "share", "cpu_usage_cores": usage}],
        "pods": [{"pod": pod, "containers": [main]}],
    }
    return sample_of("node1", 1, 2.0, fields)


def advised(policy: str, seen: NodeSample | View, at_s: float = 0.0, last: Round | None = None) -> Round:
    """One round of a policy."""
    chosen = ConfiguredPolicy(POLICIES[policy], POLICIES[policy].settings())
    view = view_of(seen, MACHINE) if isinstance(seen, NodeSample) else seen
    return decide(view, at_s, chosen, SizingRules(), last)


@pytest.mark.parametrize(
    ("usage", "waiting", "quota", "stolen", "for_cpus"),
    [
        pytest.param(1.0, 2.0, NO_QUOTA, 0.0, 2.0, id="three tasks on one CPU"),
        pytest.param(0.4, 2.6, NO_QUOTA, 0.0, 2.6, id="the same, beside a process of the host"),
        pytest.param(1.0, 0.0, NO_QUOTA, 0.0, 0.0, id="nobody waits"),
        pytest.param(0.3, 2.7, Quota(0.3, 0.35), 0.0, 0.0, id="at its quota"),
        pytest.param(
            2.0, 2.0, Quota(4.0, 2.0), 0.0, 0.0, id="throttled half of the time, each task on a CPU of its own"
        ),
        pytest.param(1.0, 7.0, Quota(4.0), 0.0, 3.0, id="eight tasks on one CPU, a quota of four"),
        pytest.param(0.5, 0.5, NO_QUOTA, 0.5, 0.0, id="what waits does so because the CPU is away half of the time"),
        pytest.param(0.5, 2.5, NO_QUOTA, 0.5, 1.0, id="three tasks on a CPU that is away half of the time"),
    ],
)
def test_what_more_cpus_would_serve(usage: float, waiting: float, quota: Quota, stolen: float, for_cpus: float) -> None:
    wait = wait_of(usage, waiting, quota, stolen)
    assert wait.for_cpus == pytest.approx(for_cpus)
    assert wait.for_others == pytest.approx(waiting - for_cpus)


@given(cores, cores, cores, quotas, ratios)
def test_more_waiting_never_counts_less_and_more_theft_never_more(
    usage: float, waiting: float, more: float, quota: Quota, stolen: float
) -> None:
    def counted(waiting: float, stolen: float) -> float:
        return wait_of(usage, waiting, quota, stolen).for_cpus or 0.0

    assert 0 <= counted(waiting, stolen) <= counted(waiting + more, stolen)
    assert counted(waiting, stolen) <= counted(waiting, 0.0) <= waiting + 1e-9


@given(cores, cores, quotas, ratios)
def test_nobody_wants_beyond_the_quota_or_the_tasks_there_are(
    usage: float, waiting: float, quota: Quota, stolen: float
) -> None:
    wait = wait_of(usage, waiting, quota, stolen)
    wanted = usage + (wait.for_cpus or 0.0)
    assert wanted <= usage + waiting + 1e-9
    assert not quota.limit_cores or wanted <= max(usage, quota.limit_cores) + 1e-9
    assert wait_of(usage, 0.0, quota, stolen).for_cpus == 0


@given(cores, cores, cores, ratios)
def test_a_quota_alone_and_a_hypervisor_alone_raise_nothing(
    usage: float, throttled: float, runnable: float, stolen: float
) -> None:
    assert wait_of(usage, throttled, Quota(64.0, throttled), 0.0).for_cpus == 0
    ran = runnable * (1 - stolen)
    assert wait_of(ran, runnable - ran, NO_QUOTA, stolen).for_cpus == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("usage", "steal", "ratio"),
    [(3.0, 1.0, 0.25), (3.0, None, 0.0), (None, None, 0.0), (0.0, 0.0, 0.0), (None, 2.0, 1.0)],
)
def test_the_part_of_the_time_that_was_stolen(usage: float | None, steal: float | None, ratio: float) -> None:
    assert stolen_ratio(usage, steal) == ratio


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_sees_a_tenant_that_cannot_get_cpu(policy: str) -> None:
    calm, squeezed = advised(policy, sample(usage=1.0)), advised(policy, sample(usage=1.0, waiting=8.0))
    assert squeezed.demand.cores >= 9.0 > calm.demand.cores
    assert [why.numbers for why in squeezed.why if why.rule.startswith("want")] == [
        {"least_cores": 9.0, "waiting_tasks": 8.0, "held_back_tasks": 0.0, "asked_cores": 0.0}
    ]
    assert squeezed.sizes.share_cpus > calm.sizes.share_cpus


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "held_back",
    [
        pytest.param({"waiting": 8.0, "limit_millis": 1000, "throttled_cores": 1.0}, id="by its own quota"),
        pytest.param({"waiting": 1.0, "steal": 1.0}, id="by the hypervisor"),
        pytest.param({"waiting": 0.0}, id="by nothing"),
    ],
)
def test_what_no_cpu_would_serve_asks_for_none_in_any_policy(policy: str, held_back: dict[str, Any]) -> None:
    """The same demand, to the last digit and word, but for what is said of the wait."""
    calm, held = advised(policy, sample(waiting=None)), advised(policy, sample(**held_back))
    assert held.demand == calm.demand
    assert held.sizes == calm.sizes


@pytest.mark.parametrize("policy", POLICIES)
def test_a_tenant_cut_to_its_pool_gets_more_each_round_until_all_its_tasks_run(policy: str) -> None:
    """Ten tasks that want a CPU each; the pool begins with what an idle tenant is left with."""
    tasks, last = 10.0, advised(policy, sample(usage=0.1))
    sizes = [last.sizes.share_cpus]
    for number in range(1, 4):
        had = min(tasks, float(sizes[-1]))
        last = advised(policy, sample(usage=had, waiting=tasks - had), 2.0 * number, last)
        sizes.append(last.sizes.share_cpus)
    assert sizes[0] < tasks <= sizes[1]
    assert sizes[-1] >= tasks


def test_a_wrong_or_hostile_figure_is_bounded_by_the_machine() -> None:
    done = advised("canonical", sample(usage=2.0, waiting=1e12))
    assert done.demand.cores == MACHINE.cpus


def test_where_nobody_counts_waiting_tasks_pressure_tells_of_one_on_each_cpu_that_is_used() -> None:
    stalled = Pressure(some_avg10_percent=50.0)
    assert view_of(sample(4.0, None, cpu_pressure=stalled), MACHINE).signs.waiting_tasks == 2.0
    assert view_of(sample(0.5, None, cpu_pressure=stalled), MACHINE).signs.waiting_tasks == 0.25
    assert view_of(sample(0.0, None, cpu_pressure=stalled), MACHINE).signs.waiting_tasks == 0, "at rest, of 10 s ago"
    assert view_of(sample(4.0, 3.0, cpu_pressure=stalled), MACHINE).signs.waiting_tasks == 3.0


def test_not_measured_is_not_zero() -> None:
    view = view_of(sample(waiting=None), MACHINE)
    assert view.signs.waiting_tasks is None
    assert wanting(Demand(3.0, 0), view) == Demand(3.0, 0)


def test_without_figures_of_containers_the_pools_total_counts() -> None:
    seen = sample(2.0, None, steal=0.5)
    pool = seen.pools[0].model_copy(update={"sched_wait_tasks": 6.0})
    view = view_of(seen.model_copy(update={"pools": (pool,)}), MACHINE)
    assert view.signs.waiting_tasks == pytest.approx((2 + 6) * 0.8 - 2)


@pytest.mark.parametrize(
    ("silent", "of_pool", "seen"),
    [
        pytest.param({"cpu_usage_cores": 3.0}, 5.0, 5.0, id="one that works does not tell: the pool's own"),
        pytest.param({"cpu_usage_cores": 0.0}, 5.0, 1.0, id="one at rest has nothing to tell"),
        pytest.param({}, 5.0, 1.0, id="one that is not measured yet"),
        pytest.param({"cpu_usage_cores": 3.0}, 0.5, 1.0, id="what is known is the least"),
        pytest.param({"cpu_usage_cores": 3.0}, None, 1.0, id="the pool does not tell either"),
        pytest.param({"cpu_usage_cores": 3.0, "sched_wait_tasks": 2.0}, 9.0, 3.0, id="both tell"),
    ],
)
def test_the_pools_own_figure_counts_unless_all_containers_that_use_cpu_tell_theirs(
    silent: dict[str, float], of_pool: float | None, seen: float
) -> None:
    told = sample(2.0, 1.0)
    pod = told.pods[0]
    measured = (*pod.containers, ContainerReading(name="second", **silent))
    pool = told.pools[0].model_copy(update={"sched_wait_tasks": of_pool})
    both = told.model_copy(update={"pools": (pool,), "pods": (pod.model_copy(update={"containers": measured}),)})
    assert view_of(both, MACHINE).signs.waiting_tasks == pytest.approx(seen)


def test_what_waits_for_its_own_quota_is_taken_out_of_the_pools_figure() -> None:
    told = sample(1.0, 8.0, limit_millis=1000, throttled_cores=1.0)
    pod = told.pods[0]
    measured = (*pod.containers, ContainerReading(name="second", cpu_usage_cores=3.0))
    pool = told.pools[0].model_copy(update={"sched_wait_tasks": 10.0})
    both = told.model_copy(update={"pools": (pool,), "pods": (pod.model_copy(update={"containers": measured}),)})
    assert view_of(both, MACHINE).signs.waiting_tasks == pytest.approx(2.0)


def _named_pool(seen: NodeSample) -> View:
    """The tenant in a share pool of its own name."""
    view = view_of(seen, MACHINE)
    return replace(view, containers=tuple(replace(one, pool="batch") for one in view.containers))


@pytest.mark.parametrize("place", [_named_pool])
def test_every_region_sees_what_waits_in_it(place: Callable[[NodeSample], View]) -> None:
    own = {size.pool: size.cpus for size in advised("canonical", place(sample(1.0, 6.0))).own_pools}
    assert own["batch"] >= 7
