"""The what-if kind `overcommit_admit`: the webhook on the status of a Node."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.central.core.overcommit.admit import Admitted, ByResource, NodeOvercommit, admitted
from services.central.core.overcommit.amounts import Amounts
from services.central.whatif.overcommit import AREA
from shared.contracts.kube.overcommit import RESOURCES, Resource
from shared.whatif.decisions import Answer, Question, decision

Amount = Annotated[int, Field(ge=0)]
AmountOf = dict[Resource, Amount]


class FiguresAsked(Question):
    """Allocatable and capacity by resource; milli-cores and bytes."""

    allocatable: AmountOf
    capacity: AmountOf

    @property
    def by_resource(self) -> ByResource:
        """As the rule has them."""
        return {
            name: Amounts(self.allocatable[name], self.capacity[name])
            for name in RESOURCES
            if name in self.allocatable and name in self.capacity
        }


class OvercommittedAsked(Question):
    """Of one resource; null: not known."""

    allocatable: Amount | None = None
    capacity: Amount | None = None


class AnnotationsAsked(Question):
    """A Node's annotations."""

    ratio: dict[Resource, str] = {}
    realtime: dict[Resource, str] = {}
    overcommit: dict[Resource, OvercommittedAsked] = {}
    originals: FiguresAsked | None = None

    @property
    def said(self) -> NodeOvercommit:
        """As the rule has it."""
        figures = {
            name: Amounts(one.allocatable, one.capacity)
            for name, one in self.overcommit.items()
            if one.allocatable is not None and one.capacity is not None
        }
        return NodeOvercommit(
            ratio=self.ratio,
            realtime=self.realtime,
            overcommitted=figures,
            originals={} if self.originals is None else self.originals.by_resource,
        )


class AdmitQuestion(Question):
    """A write to a Node."""

    operation: str
    subresource: str | None = None
    writer: Literal["kubelet", "other"] = "kubelet"
    status: FiguresAsked
    annotations: AnnotationsAsked = AnnotationsAsked()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.status.allocatable.keys() != self.status.capacity.keys():
            raise ValueError("status: allocatable and capacity want the same resources")
        return self


class FiguresAnswer(Answer):
    """Allocatable and capacity by resource."""

    allocatable: AmountOf
    capacity: AmountOf


class AdmitAnswer(Answer):
    """What is stored; `originals` null: nothing is kept."""

    changed: bool
    originals: FiguresAnswer | None
    allocatable: AmountOf
    capacity: AmountOf


@decision("overcommit_admit", area=AREA, asks=AdmitQuestion, answers=AdmitAnswer)
def overcommit_admit(question: AdmitQuestion) -> AdmitAnswer:
    """Return what the API server stores when a node's status is written."""
    sent = question.status.by_resource
    found = Admitted(sent)
    if (question.operation, question.subresource) == ("UPDATE", "status"):
        found = admitted(sent, question.annotations.said, by_kubelet=question.writer == "kubelet")
    return AdmitAnswer(
        changed=found.status != sent,
        originals=None if found.originals is None else FiguresAnswer(**_fields(found.originals)),
        **_fields(found.status),
    )


def _fields(figures: ByResource) -> dict[str, AmountOf]:
    return {
        "allocatable": {name: one.allocatable for name, one in figures.items()},
        "capacity": {name: one.capacity for name, one in figures.items()},
    }
