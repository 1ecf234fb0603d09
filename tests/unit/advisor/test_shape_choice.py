"""`advisor.shape: auto`: CPUs are shared once everything speaks for it, and the shape does not go to and fro."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from advisor_world import Live, MakeFields, MakePod, MakeSample, Node
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.machine import Bounds
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.round.decide import SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.core.round.shape_choice import ShapeChoice, ShapeEvidence
from services.advisor.policies import adaptive, canonical
from services.advisor.settings import AdvisorSettings, choice_of
from shared.contracts.allocation import Allocation
from shared.contracts.sample import PodReading
from shared.errors import SubletError

ALL = ShapeEvidence(idle_class=True, knows_tenants=True)
AT_ONCE: dict[str, Any] = {"policies": {"adaptive": {"cold_start_s": 0}}}
"""Settings by which the policy decides from its first round."""


@pytest.mark.parametrize(
    ("setting", "of_policy", "evidence", "shape", "why"),
    [
        pytest.param("auto", "shared", ALL, "shared", "idle class", id="everything speaks for it"),
        pytest.param("auto", "partitioned", ALL, "partitioned", "declares it", id="the policy does not"),
        pytest.param("auto", "shared", ShapeEvidence(None, True), "partitioned", "has not said", id="qrm is silent"),
        pytest.param("auto", "shared", ShapeEvidence(False, True), "partitioned", "5.15", id="no idle class"),
        pytest.param("auto", "shared", ShapeEvidence(True), "partitioned", "does not know", id="unknown tenants"),
        pytest.param("partitioned", "shared", ALL, "partitioned", "says so", id="set"),
        pytest.param("shared", "partitioned", ShapeEvidence(), "shared", "says so", id="set, whatever is known"),
    ],
)
def test_the_shape_and_why(setting: Any, of_policy: Any, evidence: ShapeEvidence, shape: str, why: str) -> None:
    choice = choice_of(AdvisorSettings(shape=setting))
    choice = replace(choice, policy=replace(choice.policy, shape=of_policy))
    assert choice.shape(evidence).shape == shape
    assert why in choice.shape(evidence).why
    bounds = choice.bounds(48, smt=True, evidence=evidence)
    assert (bounds.shares_cpus, bounds.disjoint) == (shape == "shared", shape == "partitioned")


def test_by_default_the_policy_that_shares_is_adaptive() -> None:
    assert choice_of(AdvisorSettings()).shape(ALL).shape == "shared"
    for name in ("canonical", "koordinator", "model"):
        assert choice_of(AdvisorSettings(policy=name)).shape(ALL).shape == "partitioned"


@given(st.lists(st.none() | st.booleans(), max_size=12))
def test_what_qrm_says_changes_the_shape_once_and_back_at_most(told: list[bool | None]) -> None:
    evidence, shapes = ShapeEvidence(knows_tenants=True), ["partitioned"]
    for idle_class in told:
        evidence = evidence.with_idle_class(idle_class)
        shapes.append(ShapeChoice.of("auto", adaptive.POLICY, evidence).shape)
    changes = sum(now != before for before, now in pairwise(shapes))
    assert changes <= 2
    assert "shared" not in shapes or True in told[: shapes.index("shared")]
    if False in told:
        assert shapes[-1] == "partitioned", "who refused once is not believed before the next start"


def evidence_of_a_round(make: MakeSample, pods: tuple[Any, ...], policy: Any, **given: float) -> bool:
    settings = policy.settings(**({"cold_start_s": 0.0, **given} if policy is adaptive.POLICY else {}))
    view = view_of(make(*pods), Bounds.of(48, smt=True))
    done = decide(view, 0.0, ConfiguredPolicy(policy, settings), SizingRules(), None)
    return ShapeEvidence().with_round(done, view, adaptive.POLICY).knows_tenants


def test_tenants_are_known_once_the_policy_itself_has_decided_for_some(sample: MakeSample, pod: MakePod) -> None:
    web = (pod("web", cpu_usage_cores=2.0),)
    assert evidence_of_a_round(sample, web, adaptive.POLICY)
    assert not evidence_of_a_round(sample, web, adaptive.POLICY, cold_start_s=600), "canonical decided for it"
    assert evidence_of_a_round(sample, web, adaptive.POLICY, cold_start_s=600, margin_factor=5), "it may share them"
    assert not evidence_of_a_round(sample, web, canonical.POLICY), "another policy stood in"
    assert not evidence_of_a_round(sample, (), adaptive.POLICY), "an empty node says nothing of tenants to come"


def test_a_node_shares_its_cpus_after_the_first_round_with_tenants_and_says_why(
    live: Live, pod: MakePod, fields: MakeFields
) -> None:
    async def story(node: Node) -> None:
        async def after(idle_class: bool | None, *pods: PodReading) -> tuple[bool, str]:
            await node.place(idle_class=idle_class)
            await node.measure(fields(*pods))
            return node.advices[-1].overlap, node.advices[-1].why[-1].rule

        web = pod("web", cpu_usage_cores=2.0)
        await node.measure(fields(web))
        assert "qrm has not said" in node.advices[-1].why[-1].rule
        shares, why = await after(True, web)
        assert shares
        assert why.startswith("shape shared: the kernel has an idle class")
        assert node.app.state()["shape"]["name"] == "shared"
        # An allocation of an older qrm, and one of a node without pods, change nothing.
        assert (await after(None))[0]
        assert not (await after(False, web))[0]
        assert not (await after(True, web))[0]

    live(story, AT_ONCE)


def test_without_a_word_of_qrm_a_node_never_shares(live: Live, pod: MakePod, fields: MakeFields) -> None:
    async def story(node: Node) -> None:
        for _ in range(5):
            await node.measure(fields(pod("web", cpu_usage_cores=2.0)))
            await node.place()
        assert not any(advice.overlap for advice in node.advices)

    live(story, AT_ONCE)


@pytest.mark.parametrize("word", ["yes", 1, "true", {}, []])
def test_a_word_of_another_kind_is_refused_with_its_allocation(word: Any) -> None:
    body = f'{{"v": 1, "node": "n", "boot_id": "{"0" * 16}", "seq": 1, "sent_at": "2026-01-01T00:00:00Z"'
    with pytest.raises(SubletError):
        Allocation.decode(f'{body}, "status": "applied", "idle_class": {word!r}}}'.replace("'", '"').encode())
    assert Allocation.decode(f'{body}, "status": "applied"}}'.encode()).idle_class is None
