"""The what-if kind `reclaimed_fit`: on which nodes a reclaimed pod fits."""

from services.central.core.scheduling.amounts import one_spelling
from services.central.core.scheduling.reclaimed_fit import insufficient, reclaimed_request
from services.central.whatif.scheduling import AREA
from services.central.whatif.scheduling.pods import Amounts, PlacedContainer, together
from shared.contracts.pod import QosClass
from shared.whatif.decisions import Answer, Question, decision


class OfferingNode(Question):
    """A node's offer, null if it was never reported, and what pods took of it."""

    name: str
    allocatable: Amounts | None = None
    requested: Amounts = {}


class ReclaimedFitQuestion(Question):
    """A pod, and nodes."""

    qos: QosClass = "reclaimed_cores"
    containers: list[PlacedContainer]
    overhead: Amounts = {}
    nodes: list[OfferingNode]


class NodeFit(Answer):
    """Whether a node takes the pod, and what it lacks."""

    name: str
    fits: bool
    insufficient: list[str]


class ReclaimedFitAnswer(Answer):
    """What the pod takes, and the nodes by name."""

    request: Amounts
    nodes: list[NodeFit]


@decision("reclaimed_fit", area=AREA, asks=ReclaimedFitQuestion, answers=ReclaimedFitAnswer)
def reclaimed_fit(question: ReclaimedFitQuestion) -> ReclaimedFitAnswer:
    """On which nodes does a reclaimed pod fit?"""
    request = reclaimed_request(question.qos, together(question.containers, question.overhead))
    nodes = []
    for node in sorted(question.nodes, key=lambda one: one.name):
        allocatable = None if node.allocatable is None else one_spelling(node.allocatable)
        missing = insufficient(request, allocatable, one_spelling(node.requested))
        nodes.append(NodeFit(name=node.name, fits=not missing, insufficient=missing))
    return ReclaimedFitAnswer(request=request, nodes=nodes)
