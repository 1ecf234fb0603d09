"""dynamic_quota: time instead of CPUs for reclaimed pods, and the template that newcomers copy."""

from collections.abc import Mapping
from typing import Any

import pytest

from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.policies import canonical, template
from services.advisor.policies.dynamic_quota import POLICY, DynamicQuotaSettings

BIG = Bounds.of(48, smt=True)


def web(usage: float | None, **over: Any) -> ContainerView:
    fields: dict[str, Any] = {
        "pod": "default/web", "uid": "web", "name": "main", "qos": "shared_cores", "request_cores": 2.0,
        "request_bytes": 0, "cpu": Figures(usage), "memory": Resident(),
    }  # fmt: skip
    return ContainerView(**fields | over)


def fields(
    node: float | None, reclaimed: float | None, last: Round | None = None, **over: Any
) -> tuple[Round, dict[str, Any]]:
    view = View(BIG, (web(4.0), *over.pop("more", ())), node_usage_cores=node, reclaimed_usage_cores=reclaimed, **over)
    done = decide(view, 0.0, ConfiguredPolicy(POLICY, DynamicQuotaSettings()), SizingRules(), last)
    return done, done.fields()


@pytest.mark.parametrize(
    ("node", "reclaimed", "quota"),
    [
        pytest.param(14.0, 10.0, 24_800, id="48 x 0.6 - 14 + 10"),
        pytest.param(40.0, 20.0, 8800, id="the tenants need more: less than now"),
        pytest.param(44.0, 4.0, 4000, id="never below the floor"),
        pytest.param(None, 4.0, None, id="the node is not measured"),
        pytest.param(14.0, None, None, id="reclaimed pods are not measured"),
    ],
)
def test_the_quota_of_reclaimed_pods(node: float | None, reclaimed: float | None, quota: int | None) -> None:
    _, told = fields(node, reclaimed)
    assert told["reclaimed_quota_millis"] == quota
    assert told["reclaimed_cpu_millis"] == min(38_000, quota or 38_000)


def test_while_a_figure_is_missing_the_last_quota_stays() -> None:
    last, told = fields(40.0, 20.0)
    after, later = fields(None, None, last)
    assert later["reclaimed_quota_millis"] == told["reclaimed_quota_millis"] == 8800
    assert any("the usage is not known" in reason.rule for reason in after.why)


def test_the_tenants_pools_are_the_canonical_ones_and_there_is_one_quota_for_all_regions() -> None:
    more = (web(6.0, pod="default/b", uid="b", pool="batch"),)
    done, told = fields(20.0, 2.0, more=more)
    plain = decide(
        View(BIG, (web(4.0), *more)),
        0.0,
        ConfiguredPolicy(canonical.POLICY, canonical.CanonicalSettings()),
        SizingRules(),
        None,
    )
    assert done.sizes.share_cpus == plain.sizes.share_cpus
    assert told["reclaimed_quota_millis"] == 10_800


def test_the_template_remembers_the_most_that_was_used_for_a_minute() -> None:
    settings = template.Settings()
    state: Mapping[tuple[str, str], tuple[float, float]] = {}
    story = []
    for now_s, usage in [(0, 4.0), (10, 1.0), (60, 1.0), (61, 1.0), (62, None)]:
        state, demand = template.judge(state, View(BIG, (web(usage),)), now_s, settings)
        story.append(demand.cores)
    assert story == [6.0, 6.0, 6.0, 1.5, 2.0]
