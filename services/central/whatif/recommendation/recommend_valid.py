"""The what-if kind `recommend_valid`: whether a ResourceRecommend can be followed, and what for."""

from services.central.core.recommendation.request import BUFFER_PERCENT
from services.central.core.recommendation.validity import (
    SUPPORTED_KINDS,
    Code,
    ContainerPolicy,
    ResourcePolicy,
    WantedRecommendation,
    validity,
)
from shared.whatif.decisions import Answer, Question, decision


class TargetAsked(Question):
    """The workload."""

    kind: str = ""
    name: str = ""


class ResourcePolicyAsked(Question):
    """What is wanted for one resource."""

    resource: str = ""
    buffer_percent: int = BUFFER_PERCENT
    controlled_values: str = ""


class ContainerPolicyAsked(Question):
    """What is wanted for a container."""

    container: str = ""
    resources: list[ResourcePolicyAsked] = []


class SpecAsked(Question):
    """The spec of a ResourceRecommend."""

    target: TargetAsked
    algorithm: str = ""
    container_policies: list[ContainerPolicyAsked] = []


class ValidQuestion(Question):
    """A spec, and the containers of the workload that it names; null if there is no such workload."""

    kinds: list[str] = list(SUPPORTED_KINDS)
    spec: SpecAsked
    workload_containers: list[str] | None = None


class ResourceToRecommend(Answer):
    """A resource and its buffer."""

    resource: str
    buffer_percent: int


class ContainerToRecommend(Answer):
    """A container of the workload."""

    container: str
    resources: list[ResourceToRecommend]


class ValidAnswer(Answer):
    """`ok` and what is to be recommended, or what is wrong."""

    code: Code
    containers: list[ContainerToRecommend]


@decision("recommend_valid", area="recommendation", asks=ValidQuestion, answers=ValidAnswer)
def recommend_valid(question: ValidQuestion) -> ValidAnswer:
    """Whether a ResourceRecommend can be followed, and what for."""
    spec = question.spec
    policies = [
        ContainerPolicy(
            policy.container,
            [ResourcePolicy(one.resource, one.buffer_percent, one.controlled_values) for one in policy.resources],
        )
        for policy in spec.container_policies
    ]
    wanted = WantedRecommendation(spec.target.kind, spec.target.name, spec.algorithm, policies)
    found = validity(wanted, question.workload_containers, question.kinds)
    containers = [
        ContainerToRecommend(
            container=name,
            resources=[ResourceToRecommend(resource=one.resource, buffer_percent=one.buffer_percent)
                       for one in resources],
        )
        for name, resources in found.containers.items()
    ]  # fmt: skip
    return ValidAnswer(code=found.code, containers=containers)
