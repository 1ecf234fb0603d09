"""The what-if kind `tide_pass`: whether a node changes sides."""

from typing import Annotated

from pydantic import Field

from services.central.core.tide.sides import TideNode, TidePod, TideRole, next_flip
from services.central.whatif.tide.pool_roles import AREA, AskedRole
from shared.whatif.decisions import Answer, Question, decision

Amount = Annotated[int, Field(ge=0)]
Age = Annotated[float, Field(ge=0)]


class AskedTideNode(Question):
    """A node of the pool."""

    name: str
    role: AskedRole | None = None
    allocatable: dict[str, Amount]
    unschedulable: bool = False
    flipped_s_ago: Age | None = None


class AskedTidePod(Question):
    """A pod; `unschedulable`: the scheduler reported it, `stays`: it belongs to a DaemonSet."""

    name: str
    node: str | None = None
    online: bool = False
    requests: dict[str, Amount]
    unschedulable: bool = False
    stays: bool = False


class PassQuestion(Question):
    """A pool with its pods, and those that have no node."""

    nodes: list[AskedTideNode]
    pods: list[AskedTidePod]
    min_hold_s: Age = 0.0


class FlipAnswer(Answer):
    """The node that changes sides, and the pod for which it does."""

    node: str
    to: TideRole
    for_pod: str | None


class PassAnswer(Answer):
    """At most one flip; pods that fit nowhere, up to the one that decided."""

    flip: FlipAnswer | None
    stuck: list[str]


@decision("tide_pass", area=AREA, asks=PassQuestion, answers=PassAnswer)
def tide_pass(question: PassQuestion) -> PassAnswer:
    """Does a node of a tide pool change sides?"""
    nodes = [TideNode(**node.model_dump()) for node in question.nodes]
    pods = [TidePod(**pod.model_dump()) for pod in question.pods]
    found = next_flip(nodes, pods, question.min_hold_s)
    flip = found.flip
    return PassAnswer(
        flip=None if flip is None else FlipAnswer(node=flip.node, to=flip.to, for_pod=flip.for_pod),
        stuck=list(found.stuck),
    )
