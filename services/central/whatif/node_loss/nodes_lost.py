"""The what-if kind `nodes_lost`: what central would do, and when, if some nodes fell silent now."""

from typing import Annotated

from pydantic import Field

from services.central.core.lost_nodes.guards import NodePlace
from services.central.core.lost_nodes.rules import Rules
from services.central.whatif.node_loss.story import MOST_S, Happening, Loss, LossStep, StoryNode, tell_loss
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision

MOST_NODES = 100_000
SHOWN = 5


class ClusterNode(Question):
    """A node of the cluster as it stands."""

    name: str
    pool: str | None = None
    zone: str | None = None
    reclaimed_pods: Annotated[int, Field(ge=0, le=10_000)] = 0
    observes: bool = False


class NodesLostQuestion(Question):
    """All nodes, and those that fall silent at the same moment."""

    nodes: Annotated[list[ClusterNode], Field(max_length=MOST_NODES)]
    silent: Annotated[list[str], Field(min_length=1, max_length=MOST_NODES)]
    agents_ready: bool = False
    """Whether their agents' pods stay ready: then only the bus is cut."""
    nodes_stale: bool = False
    """Whether their kubelets are silent, too: then their pods are Kubernetes' business."""
    rules: Rules = Rules()
    until_s: Annotated[float, Field(gt=0, le=MOST_S)] = 3600.0


class LossMoment(Answer):
    """Something that happens, so many seconds after they fell silent."""

    at_s: float
    what: Happening
    nodes: int
    such_as: list[str]
    pods: int = 0
    why: str = ""


class NodesLostAnswer(Answer):
    """What happens, in order, and what it comes to."""

    moments: list[LossMoment]
    withdrawn: int
    tainted: int
    evicted_pods: int
    kept_pods: int


@decision("nodes_lost", area="central", asks=NodesLostQuestion, answers=NodesLostAnswer)
def nodes_lost(question: NodesLostQuestion) -> NodesLostAnswer:
    """What would happen if these nodes fell silent now?"""
    nodes = [StoryNode(n.name, NodePlace(n.pool, n.zone), n.reclaimed_pods, n.observes) for n in question.nodes]
    silent, known = set(question.silent), {node.name for node in nodes}
    if unknown := sorted(silent - known):
        raise Refused(f"no node {', '.join(unknown[:SHOWN])} among the {len(known)} that are known", reason="no_node")
    loss = Loss(silent, agents_ready=question.agents_ready, nodes_stale=question.nodes_stale)
    told = list(tell_loss(nodes, loss, question.rules, question.until_s))
    evicted = sum(moment.pods for moment in told)
    return NodesLostAnswer(
        moments=[_shown(moment) for moment in told],
        withdrawn=sum(len(moment.nodes) for moment in told if moment.what == "withdrawn"),
        tainted=sum(moment.what == "tainted" for moment in told),
        evicted_pods=evicted,
        kept_pods=sum(node.reclaimed_pods for node in nodes if node.name in silent) - evicted,
    )


def _shown(moment: LossStep) -> LossMoment:
    names = list(moment.nodes[:SHOWN])
    return LossMoment(
        at_s=moment.at_s, what=moment.what, nodes=len(moment.nodes), such_as=names, pods=moment.pods, why=moment.why
    )
