"""The what-if kind `vpa_target`: whether a pod gets new figures, and which."""

from collections.abc import Iterable
from typing import Any, Self

from pydantic import model_validator

from services.central.core.recommendation.vpa_target import (
    COMPUTE,
    ContainerFigures,
    ControlledValues,
    Hindrance,
    PodMatching,
    ResizePolicy,
    Strategy,
    check_strategy,
    concerns,
    pod_target,
)
from shared.whatif.decisions import Answer, Question, decision

Amounts = dict[str, int]


class FiguresOfPod(Question):
    """A container's requests and limits."""

    name: str
    requests: Amounts = {}
    limits: Amounts = {}


class RecommendedFigures(Question):
    """The recommended requests of a container."""

    container: str
    requests: Amounts = {}
    limits: Amounts = {}


class PodOfVpa(Question):
    """A pod of the autoscaler's target."""

    created_s: float
    containers: list[FiguresOfPod]


class PolicyOfContainer(Question):
    """What of a container may change, or with `*` of all that are not named."""

    container: str
    controlled_values: ControlledValues = "RequestsAndLimits"
    controlled_resources: list[str] = list(COMPUTE)
    min_allowed: Amounts = {}
    max_allowed: Amounts = {}

    @property
    def policy(self) -> ResizePolicy:
        """As the rule has it."""
        return ResizePolicy(self.controlled_values, self.controlled_resources, self.min_allowed, self.max_allowed)


class VpaTargetQuestion(Question):
    """An autoscaler, what it recommends, and a pod."""

    strategy: Strategy = "Inplace"
    pod_matching: PodMatching = "All"
    vpa_created_s: float
    pod: PodOfVpa
    recommended: list[RecommendedFigures]
    policies: list[PolicyOfContainer] = []

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        _distinct("pod.containers", [one.name for one in self.pod.containers])
        _distinct("recommended", [one.container for one in self.recommended])
        _distinct("policies", [one.container for one in self.policies])
        return self


class FiguresAfter(Answer):
    """A container after the change."""

    name: str
    requests: Amounts
    limits: Amounts


class VpaTargetAnswer(Answer):
    """Whether the pod changes; all of its containers where it does, what speaks against it where it may not."""

    update: bool
    reason: Hindrance | None = None
    containers: list[FiguresAfter] = []
    explain: Any = None


@decision("vpa_target", area="recommendation", asks=VpaTargetQuestion, answers=VpaTargetAnswer)
def vpa_target(question: VpaTargetQuestion) -> VpaTargetAnswer:
    """Does a pod get new figures?"""
    check_strategy(question.strategy)
    if question.strategy == "Off":
        return VpaTargetAnswer(update=False, explain="strategy Off")
    if not concerns(question.pod_matching, vpa_created_s=question.vpa_created_s, pod_created_s=question.pod.created_s):
        return VpaTargetAnswer(update=False, explain="not a pod of this age")
    found = pod_target(
        {one.name: ContainerFigures(one.requests, one.limits) for one in question.pod.containers},
        {one.container: ContainerFigures(one.requests, one.limits) for one in question.recommended},
        {one.container: one.policy for one in question.policies},
    )
    after = [FiguresAfter(name=name, requests=dict(one.requests), limits=dict(one.limits))
             for name, one in found.containers.items()]  # fmt: skip
    return VpaTargetAnswer(update=bool(after), reason=found.hindrance, containers=after)


def _distinct(field: str, names: Iterable[str]) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise ValueError(f"{field}: {name!r} is there twice")
        seen.add(name)
