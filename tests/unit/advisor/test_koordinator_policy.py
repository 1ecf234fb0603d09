"""The policy koordinator: the budget of CPU suppression, as CPUs of the reclaimed pool or as its CPU time."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.policy import Policy
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.policies.koordinator import POLICY, KoordinatorSettings, SuppressState, judge
from sublet.laws.law import Law
from sublet.laws.policy import LAWS

BIG = Bounds.of(48, smt=True)


def container(name: str, usage: float | None, **over: Any) -> ContainerView:
    fields: dict[str, Any] = {
        "pod": f"default/{name}", "uid": name, "name": "main", "qos": "shared_cores", "request_cores": 2.0,
        "request_bytes": 0, "cpu": Figures(usage), "memory": Resident(),
    }  # fmt: skip
    return ContainerView(**fields | over)


def node(usage: float | None, *containers: ContainerView, reclaimed: float | None = 2.0, **over: Any) -> View:
    return View(BIG, containers, node_usage_cores=usage, reclaimed_usage_cores=reclaimed, **over)


def advise(view: View, last: Round | None = None, now_s: float = 0.0, **settings: Any) -> Round:
    chosen = ConfiguredPolicy(POLICY, KoordinatorSettings(**settings))
    return decide(view, now_s, chosen, SizingRules(), last)


def reclaim_cpus(done: Round) -> int:
    return done.sizes.reclaim_cpus


@pytest.mark.parametrize(
    ("view", "settings", "cpus"),
    [
        pytest.param(node(12.0, container("web", 8.0)), {}, 20, id="31.2 - 8 - 2, whole cores"),
        pytest.param(node(12.0, container("web", 8.0)), {"suppress_threshold_percent": 70}, 22, id="33.6 - 8 - 2"),
        pytest.param(node(12.0, container("web", 8.0)), {"reserved_cores": 6}, 16, id="the reserve is more: 31.2 - 14"),
        pytest.param(node(12.0, container("web", 8.0)), {"reserved_cores": 1}, 20, id="the system is more"),
        pytest.param(
            node(12.0, container("web", 8.0), applications_usage_cores=2.0), {}, 20, id="an application, no system"
        ),
        pytest.param(
            node(12.0, container("web", 8.0), applications_usage_cores=2.0),
            {"reserved_cores": 2},
            18,
            id="an application beside what is reserved: 31.2 - 8 - 2 - 2",
        ),
        pytest.param(node(9.0, container("web", 8.0)), {}, 22, id="figures of two moments: the system is not below 0"),
        pytest.param(node(40.0, container("web", 36.0)), {}, 4, id="nothing left: the floor"),
        pytest.param(node(40.0, container("web", 20.0)), {"suppress_min_percent": 30}, 14, id="at least 30 %"),
        pytest.param(node(40.0, container("web", 36.0)), {"suppress_min_percent": 90}, 4, id="the tenants go before"),
        pytest.param(node(12.0, container("web", None)), {}, 20, id="not measured: 31.2 - 2 asked for - 8 not known"),
        pytest.param(
            node(12.0, container("web", 1.0), tenants_usage_cores=8.0),
            {"reserved_cores": 6},
            16,
            id="the pool shows it first: 31.2 - 8 - 6",
        ),
        pytest.param(
            node(12.0, container("web", 8.0), container("job", 2.0, qos="reclaimed_cores"), reclaimed=None),
            {},
            20,
            id="reclaimed pods one by one",
        ),
        pytest.param(
            node(14.0, container("web", 8.0), container("dns", 2.0, qos="system_cores")), {}, 18, id="system pods"
        ),
    ],
)
def test_the_reclaimed_pool_is_the_budget(view: View, settings: dict[str, Any], cpus: int) -> None:
    assert reclaim_cpus(advise(view, **settings)) == cpus


def test_what_other_regions_use_is_not_the_systems_and_their_cpus_are_theirs() -> None:
    own = container("own", 4.0, qos="dedicated_cores", dedicated=True, cpus_per_numa=((0, 12),), request_cores=12.0)
    view = node(16.0, container("web", 8.0), own)
    numbers = dict(advise(view).why[0].numbers)
    assert numbers["system_usage_cores"] == 2.0
    assert numbers["tenants_usage_cores"] == 12.0
    assert numbers["budget_cores"] == 17.2


def test_while_the_node_is_not_measured_applications_use_what_they_used() -> None:
    seen = node(16.0, container("web", 8.0), applications_usage_cores=4.0)
    state, known = judge(SuppressState(), seen, 0.0, KoordinatorSettings())
    _, unknown = judge(state, replace(seen, node_usage_cores=None, applications_usage_cores=None), 1.0,
                       KoordinatorSettings())  # fmt: skip
    assert state.applications_cores == 4.0
    assert unknown.cores == known.cores


def test_while_the_node_is_not_measured_the_system_is_what_it_was() -> None:
    state, known = judge(SuppressState(), node(14.0, container("web", 8.0)), 0.0, KoordinatorSettings())
    after, unknown = judge(state, node(None, container("web", 8.0)), 1.0, KoordinatorSettings())
    assert state.system_cores == after.system_cores == 4.0
    assert unknown.cores == known.cores
    assert "not measured" in unknown.why[0].rule


def quotas(*story: tuple[float, float | None], **settings: Any) -> list[int | None]:
    """Of a node whose use is given at these seconds; its tenants use all of it."""
    last, found = None, []
    for now_s, usage in story:
        view = node(usage, container("web", usage), reclaimed=0.0)
        last = advise(view, last, now_s, suppress_policy="cfsQuota", **settings)
        found.append(last.fields()["reclaimed_quota_millis"])
    return found


@pytest.mark.parametrize(
    ("story", "millis"),
    [
        pytest.param([(0.0, 11.2)], [20_000], id="the first is the budget"),
        pytest.param([(0.0, 40.0)], [4000], id="never below the floor"),
        pytest.param([(0.0, 11.2), (0.1, 31.2)], [20_000, 4000], id="it falls at once"),
        pytest.param([(0.0, 31.2), (1.0, 11.2), (2.0, 11.2)], [4000, 8800, 13_600], id="a tenth of the node a second"),
        pytest.param([(0.0, 31.2), (0.0, 11.2)], [4000, 4000], id="no time, no growth"),
        pytest.param([(0.0, 31.2), (60.0, 11.2)], [4000, 20_000], id="never above the budget"),
        pytest.param([(0.0, None)], [4000], id="never measured: the floor"),
        pytest.param([(0.0, 21.2), (9.0, None)], [10_000, 10_000], id="not measured: no growth"),
    ],
)
def test_the_quota_of_reclaimed_pods(story: list[tuple[float, float | None]], millis: list[int]) -> None:
    assert quotas(*story) == millis


def test_with_a_quota_the_pools_are_the_canonical_ones() -> None:
    view = node(12.0, container("web", 8.0))
    assert advise(view, suppress_policy="cfsQuota").demand.cores == 10.0
    assert advise(view, suppress_policy="cpuset").demand.reclaim_quota_cores is None


class ByTime(KoordinatorSettings):
    """The same settings with a quota by default, for the laws."""

    suppress_policy: Any = "cfsQuota"


@pytest.mark.parametrize("law", [pytest.param(law, id=name.replace(" ", "_")) for name, law in LAWS.items()])
def test_the_laws_hold_with_a_quota_too(law: Law[Any]) -> None:
    law(Policy(name="koordinator", settings=ByTime, start=SuppressState, judge=judge))


# A use of 0 counts as none that is known, and then the request is taken, which may be more than a first use above it.
@given(
    usages=st.lists(st.floats(0.01, 16), min_size=1, max_size=4),
    system=st.floats(0, 16),
    more=st.floats(0, 16),
    settings=st.builds(
        KoordinatorSettings,
        suppress_threshold_percent=st.integers(1, 100),
        suppress_policy=st.sampled_from(("cpuset", "cfsQuota")),
        reserved_cores=st.floats(0, 8),
    ),
)
def test_on_a_measured_node_more_load_never_leaves_more_to_reclaimed_pods(
    usages: list[float], system: float, more: float, settings: KoordinatorSettings
) -> None:
    web = [container(f"web{index}", usage) for index, usage in enumerate(usages)]
    busier = [replace(web[0], cpu=Figures(usages[0] + more)), *web[1:]]
    total = sum(usages) + system
    calm = judge(SuppressState(), node(total, *web, reclaimed=0.0), 0.0, settings)[1]
    busy = judge(SuppressState(), node(total + more, *busier, reclaimed=0.0), 0.0, settings)[1]
    assert busy.cores >= calm.cores - 2e-3  # the budget is in milli-cores
    if calm.reclaim_quota_cores is not None and busy.reclaim_quota_cores is not None:
        assert busy.reclaim_quota_cores <= calm.reclaim_quota_cores + 2e-3
