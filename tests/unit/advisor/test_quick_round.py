"""What a round keeps from the one before, and the short ways of the usual node, give what the whole way gives."""

import gc
import math
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.demand.cpu import EstimateRule, estimate_cores, requested_cores
from services.advisor.core.model.containers import Containers, once
from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.ramp import Ramp
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import CPU_TENANTS, ContainerView, View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.core.sizing.node_shape import shape_of
from services.advisor.core.sizing.region_views import region_views
from services.advisor.policies import canonical
from shared.contracts.envelope import Reason

CANONICAL = ConfiguredPolicy(canonical.POLICY, canonical.CanonicalSettings())
NODES = ((0, 24), (1, 24))
FIGURE = st.none() | st.floats(0, 8)
CONTAINERS = st.lists(
    st.builds(
        ContainerView, pod=st.sampled_from(["default/a", "default/b"]), uid=st.uuids().map(str), name=st.just("main"),
        qos=st.sampled_from(["shared_cores", "dedicated_cores", "system_cores", "reclaimed_cores"]),
        request_cores=st.floats(0, 8), request_bytes=st.integers(0, 9), cpu=st.builds(Figures, FIGURE, FIGURE, FIGURE),
        memory=st.just(Resident()),
    ),
    max_size=6,
)  # fmt: skip
VIEWS = st.builds(
    lambda containers, numas, reserve: View(
        Bounds.of(48, smt=True, reserve_cores=reserve), tuple(containers), numas=numas
    ),
    CONTAINERS,
    st.sampled_from([(), NODES]),
    st.floats(0, 12),
)

VIEW = View(Bounds.of(48, smt=True))


def dedicated(cpus: int, numa: int) -> ContainerView:
    return ContainerView(
        "default/db", "db", "main", "dedicated_cores", float(cpus), 0, Figures(), Resident(), dedicated=True,
        cpus_per_numa=((numa, cpus),),
    )  # fmt: skip


@given(view=VIEWS, size=st.none() | st.integers(0, 48))
def test_a_share_pool_alone_is_seen_as_among_many(view: View, size: int | None) -> None:
    ramps = {} if size is None else {"share": Ramp(size)}
    # A pod to be isolated that is not there: the way of a node with several regions.
    assert region_views(view, (), shape_of(view), ramps) == region_views(view, {"nobody"}, shape_of(view), ramps)


def test_a_shape_is_the_same_as_long_as_machine_and_dedicated_pods_are() -> None:
    view = View(Bounds.of(48, smt=True), (dedicated(8, 0),), numas=NODES)
    busy = replace(view, containers=(replace(dedicated(8, 0), cpu=Figures(3.0)),), tenants_usage_cores=9.0)
    assert shape_of(busy) is shape_of(view)
    assert shape_of(replace(view, containers=(dedicated(10, 0),))).node.available == {0: 14, 1: 24}
    assert shape_of(view).node.available == {0: 16, 1: 24}


@given(view=VIEWS)
def test_what_was_asked_of_the_containers_before_changes_no_round(view: View) -> None:
    kept = replace(view, containers=Containers(view.containers))
    first = decide(view, 0.0, CANONICAL, SizingRules(), None)
    assert decide(kept, 0.0, CANONICAL, SizingRules(), None) == first
    assert decide(kept, 0.0, CANONICAL, SizingRules(), None) == first


@given(containers=CONTAINERS, factor=st.floats(1, 3))
def test_canonical_estimates_of_columns_are_those_of_each_container(
    containers: list[ContainerView], factor: float
) -> None:
    fallback = VIEW.bounds.fallback_cores
    one_by_one = [
        requested_cores(one.request_cores, fallback)
        if one.qos == "dedicated_cores"
        else estimate_cores(
            one.cpu, one.request_cores, EstimateRule(factor, request_fills_gaps=one.cpu.usage_cores is None), fallback
        )
        for one in containers
        if one.qos in CPU_TENANTS
    ]
    settings = canonical.CanonicalSettings(usage_factor=factor)
    for seen in (Containers(containers), tuple(containers)):
        _, demand = canonical.judge(None, replace(VIEW, containers=seen), 0.0, settings)
        assert demand.cores == math.fsum(one_by_one)


def test_containers_are_asked_once() -> None:
    asked: list[int] = []

    @once
    def total(containers: Sequence[ContainerView], factor: int) -> int:
        asked.append(factor)
        return factor * len(containers)

    containers = Containers([dedicated(8, 0)])
    assert [total(containers, factor) for factor in (1, 1, 2, 2)] == [1, 1, 2, 2]
    assert asked == [1, 2]
    assert total(tuple(containers), 2) == 2
    assert asked == [1, 2, 2]


def test_reasons_are_put_into_words_when_they_are_first_read() -> None:
    said: list[str] = []

    def make() -> list[Reason]:
        said.append("now")
        return [Reason(rule="a"), Reason(rule="b")]

    reasons = Reasons(make)
    assert said == []
    assert (len(reasons), reasons[0].rule, [r.rule for r in reasons[1:]]) == (2, "a", ["b"])
    assert reasons == (Reason(rule="a"), Reason(rule="b"))
    assert reasons == Reasons(make)
    assert repr(reasons) == repr(tuple(reasons))
    assert said == ["now", "now"]


def test_a_round_does_not_hold_the_one_before() -> None:
    """Else a life of the advisor would hold every round it ever made."""
    bytes_of_this_test = 77_777_771
    policy = Policy("known", PolicySettings, lambda: 0, lambda *_: (0, Demand(1.0, bytes_of_this_test)))
    last: Round | None = None
    for number in range(4):
        last = decide(VIEW, number, ConfiguredPolicy(policy, PolicySettings()), SizingRules(), last)
    gc.collect()
    held = [one for one in gc.get_objects() if isinstance(one, Demand) and one.memory_bytes == bytes_of_this_test]
    # Each round has one demand.
    assert len(held) == 1
