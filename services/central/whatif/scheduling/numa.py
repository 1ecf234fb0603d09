"""The what-if kinds `numa_fit` and `numa_score`: where a bound pod would lie, and how well the machine suits it."""

from typing import Annotated

from pydantic import Field

from services.central.core.scheduling.numa.binding import ALIGNED, BindableContainer, BindablePod, NumaBinding
from services.central.core.scheduling.numa.fit import numa_fit
from services.central.core.scheduling.numa.machine import (
    Machine,
    NumaNode,
    NumaTaken,
    Policy,
    TopologyPolicy,
    counted,
)
from services.central.core.scheduling.numa.score import NumaScoring, NumaStrategy, numa_score
from services.central.whatif.scheduling import AREA
from services.central.whatif.scheduling.pods import Amounts, PlacedContainer
from shared.contracts.pod import QosClass
from shared.whatif.decisions import Answer, Question, decision


class PodToBind(Question):
    """The part of a pod that decides whether it is bound."""

    qos: QosClass = "shared_cores"
    numa_binding: bool = False
    numa_exclusive: bool = False
    containers: list[PlacedContainer]

    @property
    def bindable(self) -> BindablePod:
        """As the rule takes it."""
        containers = tuple(
            BindableContainer(one.name, one.requests, one.limits, one.init, one.sidecar) for one in self.containers
        )
        return BindablePod(containers, self.qos, self.numa_binding, self.numa_exclusive)


class BoundAmounts(Question):
    """What a pod is bound to."""

    requests: Amounts
    dedicated: bool = False


class NumaAsked(Question):
    """One NUMA node; `capacity` null: all of it is allocatable."""

    id: Annotated[int, Field(ge=0)]
    socket: int = 0
    allocatable: Amounts
    capacity: Amounts | None = None
    allocations: list[BoundAmounts] = []


class NumaFitQuestion(Question):
    """A pod and a machine."""

    policy: Policy = "dynamic"
    topology_policy: TopologyPolicy
    aligned: list[str] = sorted(ALIGNED)
    pod: PodToBind
    numas: list[NumaAsked]

    @property
    def binding(self) -> NumaBinding:
        """Return who binds what."""
        return NumaBinding(self.policy, frozenset(self.aligned))

    @property
    def machine(self) -> Machine:
        """The NUMA nodes with what is available."""
        nodes = [
            NumaNode.of(
                one.id,
                one.socket,
                (one.allocatable, one.allocatable if one.capacity is None else one.capacity),
                counted([NumaTaken(taken.requests, taken.dedicated) for taken in one.allocations], self.policy),
            )
            for one in sorted(self.numas, key=lambda one: one.id)
        ]
        return Machine(self.topology_policy, tuple(nodes))


class NumaFitAnswer(Answer):
    """Whether the pod is bound, whether it fits, and the nodes of each container."""

    applies: bool
    fits: bool
    numas: dict[str, list[int]]


@decision("numa_fit", area=AREA, asks=NumaFitQuestion, answers=NumaFitAnswer)
def numa_fit_of_pod(question: NumaFitQuestion) -> NumaFitAnswer:
    """Does a pod that binds to NUMA nodes find its place?"""
    found = numa_fit(question.pod.bindable, question.binding, question.machine)
    return NumaFitAnswer(applies=found.applies, fits=found.fits, numas=dict(found.nodes))


class NumaScoreQuestion(NumaFitQuestion):
    """With what is preferred."""

    strategy: NumaStrategy
    weights: dict[str, int] = {}


class NumaScoreAnswer(Answer):
    """The score of the machine, and of each container."""

    score: int
    containers: dict[str, int]


@decision("numa_score", area=AREA, asks=NumaScoreQuestion, answers=NumaScoreAnswer)
def numa_score_of_pod(question: NumaScoreQuestion) -> NumaScoreAnswer:
    """How well does a machine suit a pod that binds to NUMA nodes?"""
    scoring = NumaScoring(question.strategy, question.weights)
    found = numa_score(question.pod.bindable, question.binding, question.machine, scoring)
    return NumaScoreAnswer(score=found.score, containers=dict(found.containers))
