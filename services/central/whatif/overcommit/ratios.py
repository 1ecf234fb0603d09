"""The what-if kinds `overcommit_ratio` and `overcommit_resources`: the ratio that holds, and the figures it makes."""

from typing import Annotated, Literal

from pydantic import Field

from services.central.core.overcommit.amounts import Amounts
from services.central.core.overcommit.ratio import effective_ratio
from services.central.whatif.overcommit import AREA
from shared.contracts.kube.overcommit import binds
from shared.whatif.decisions import Answer, Question, decision

Amount = Annotated[int, Field(ge=0)]


class RatioQuestion(Question):
    """A ratio as it was set, and as the node can bear it."""

    set: str | None = None
    realtime: str | None = None


class RatioAnswer(Answer):
    """The ratio that holds."""

    ratio: float
    problem: Literal["ratio_unreadable"] | None


@decision("overcommit_ratio", area=AREA, asks=RatioQuestion, answers=RatioAnswer)
def overcommit_ratio(question: RatioQuestion) -> RatioAnswer:
    """The ratio by which a resource of a node is over-committed."""
    found = effective_ratio(question.set, question.realtime)
    return RatioAnswer(ratio=found.value, problem=found.problem)


class ResourceAsked(RatioQuestion):
    """One resource of a node; null: kubelet's figure is not known."""

    original_allocatable: Amount | None = None
    original_capacity: Amount | None = None


class ResourcesQuestion(Question):
    """A node, and how many CPUs are bound to pods."""

    cpu: ResourceAsked | None = None
    memory: ResourceAsked | None = None
    cpu_manager: str = "none"
    guaranteed_cpus: Amount = 0


class AdvertisedResource(Answer):
    """What the node advertises."""

    ratio: float
    allocatable: int
    capacity: int


class ResourcesAnswer(Answer):
    """By resource; null where kubelet's figures are not known."""

    cpu: AdvertisedResource | None
    memory: AdvertisedResource | None


@decision("overcommit_resources", area=AREA, asks=ResourcesQuestion, answers=ResourcesAnswer)
def overcommit_resources(question: ResourcesQuestion) -> ResourcesAnswer:
    """Return what an over-committed node advertises."""
    bound = question.guaranteed_cpus * 1000 if binds(question.cpu_manager) else 0
    return ResourcesAnswer(cpu=_advertised(question.cpu, bound), memory=_advertised(question.memory, 0))


def _advertised(asked: ResourceAsked | None, bound: int) -> AdvertisedResource | None:
    if asked is None or asked.original_allocatable is None or asked.original_capacity is None:
        return None
    ratio = effective_ratio(asked.set, asked.realtime).value
    found = Amounts(asked.original_allocatable, asked.original_capacity).times(ratio, bound=bound)
    return AdvertisedResource(ratio=ratio, allocatable=found.allocatable, capacity=found.capacity)
