"""The what-if kind `overcommit_fit`: does a pod fit where CPUs are bound and over-committed."""

from typing import Annotated, Literal

from pydantic import Field

from services.central.core.overcommit.fit import (
    ContainerClaim,
    OvercommittedNode,
    RatioPair,
    cpu_taken,
    overcommit_fit,
)
from services.central.whatif.overcommit import AREA
from shared.contracts.kube.overcommit import binds
from shared.whatif.decisions import Answer, Question, decision

Amount = Annotated[int, Field(ge=0)]


class BoundContainer(Question):
    """A container by what it asks for; cpu in milli-cores."""

    name: str | None = None
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    init: bool = False
    sidecar: bool = False

    @property
    def claim(self) -> ContainerClaim:
        """As the rule has it."""
        return ContainerClaim(
            self.requests.get("cpu"),
            self.limits.get("cpu"),
            self.requests.get("memory"),
            self.limits.get("memory"),
            init=self.init,
        )


class BoundPod(Question):
    """A pod that looks for a node."""

    containers: list[BoundContainer]
    overhead: dict[str, int] = {}


class FitNode(Question):
    """A node as the API server shows it, and what its annotations say."""

    allocatable_millicpu: Amount
    requested_millicpu: Amount
    original_allocatable_millicpu: Amount | None = None
    guaranteed_cpus: Amount = 0
    cpu_ratio: str | None = None
    realtime_cpu_ratio: str | None = None
    memory_ratio: str | None = None
    realtime_memory_ratio: str | None = None
    cpu_manager: str = "none"
    memory_manager: str = "none"

    @property
    def node(self) -> OvercommittedNode:
        """As the rule has it."""
        return OvercommittedNode(
            allocatable_cpu_millis=self.allocatable_millicpu,
            requested_cpu_millis=self.requested_millicpu,
            original_cpu_millis=self.original_allocatable_millicpu,
            guaranteed_cpus=self.guaranteed_cpus,
            cpu=RatioPair(self.cpu_ratio, self.realtime_cpu_ratio),
            memory=RatioPair(self.memory_ratio, self.realtime_memory_ratio),
            binds_cpus=binds(self.cpu_manager),
            binds_memory=binds(self.memory_manager),
        )


class OvercommitFitQuestion(Question):
    """A pod and a node."""

    pod: BoundPod
    node: FitNode


class OvercommitFitAnswer(Answer):
    """Whether the pod fits, why not, and what was counted."""

    guaranteed_cpus: int
    request_millicpu: int
    fits: bool
    reason: Literal["memory_manager", "insufficient_cpu", "ratio_unreadable"] | None
    free_millicpu: int | None


@decision("overcommit_fit", area=AREA, asks=OvercommitFitQuestion, answers=OvercommitFitAnswer)
def overcommit_fits(question: OvercommitFitQuestion) -> OvercommitFitAnswer:
    """Does a pod fit where CPUs are bound and over-committed?"""
    pod = question.pod
    claim = cpu_taken([one.claim for one in pod.containers], pod.overhead.get("cpu", 0))
    found = overcommit_fit(claim, question.node.node)
    return OvercommitFitAnswer(
        guaranteed_cpus=claim.guaranteed_cpus,
        request_millicpu=claim.request_millis,
        fits=found.fits,
        reason=found.reason,
        free_millicpu=found.free_cpu_millis,
    )
