"""Dedicated pods on machines of every size: whatever they leave, a round is decided, and its advice can be sent."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds, ShapeName
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.policy import Policy
from services.advisor.core.round.decide import SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.policies import adaptive, canonical
from shared.contracts.advice import PoolAdvice

POLICIES = (adaptive.POLICY, canonical.POLICY)


def dedicated(number: int, cores: float, numa: int | None) -> ContainerView:
    """A pod that asks for so many CPUs, and has them on a NUMA node where that is named."""
    where = () if numa is None else ((numa, max(1, int(cores))),)
    return ContainerView(
        f"default/d{number}", f"d{number}", "main", "dedicated_cores", cores, 0, Figures(), Resident(),
        cpus_per_numa=where, dedicated=True, bound=numa is not None,
    )  # fmt: skip


def advised(view: View, policy: Policy[canonical.CanonicalSettings, None]) -> PoolAdvice:
    done = decide(view, 0.0, ConfiguredPolicy(policy, policy.settings()), SizingRules(), None)
    sent_at = datetime(2026, 1, 1, tzinfo=UTC)
    return PoolAdvice(node="n", boot_id="0" * 16, seq=1, sent_at=sent_at, **done.fields())


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize(
    ("cores", "share", "reclaim"),
    [
        pytest.param(6, 1, 1, id="two CPUs are left: one for each"),
        pytest.param(7, 1, 0, id="one CPU is left: the tenants have it"),
        pytest.param(8, 0, 0, id="none is left"),
    ],
)
def test_a_dedicated_pod_that_has_not_been_placed_may_take_nearly_all(
    policy: Policy[canonical.CanonicalSettings, None], cores: int, share: int, reclaim: int
) -> None:
    advice = advised(View(Bounds.of(8, smt=False), (dedicated(0, cores, None),)), policy)
    assert (advice.size_of("share"), advice.size_of("reclaim")) == (share, reclaim)
    assert (advice.reclaimed_cpu_millis, advice.oversold_ratio) == (1000 * reclaim, 1.0)


@given(
    st.integers(1, 256),
    st.booleans(),
    st.sampled_from(["partitioned", "shared"]),
    st.lists(st.tuples(st.floats(0, 300), st.sampled_from([None, 0, 1])), max_size=4),
    st.sampled_from(POLICIES),
)
def test_on_machines_of_every_size_the_advice_can_be_sent(
    cpus: int,
    smt: bool,
    shape: ShapeName,
    pods: list[tuple[float, int | None]],
    policy: Policy[canonical.CanonicalSettings, None],
) -> None:
    numas = ((0, cpus - cpus // 2), (1, cpus // 2)) if cpus > 1 else ((0, cpus),)
    asking = tuple(dedicated(number, cores, numa) for number, (cores, numa) in enumerate(pods))
    advice = advised(View(Bounds.of(cpus, smt=smt, shape=shape), asking, numas=numas), policy)
    assert 0 <= advice.reclaimed_cpu_millis <= 1000 * cpus
    assert advice.oversold_ratio >= 1
    if advice.size_of("reclaim") == 0:
        assert advice.reclaimed_cpu_millis == 0
