"""The what-if kinds `node_verdict`, `cluster_guards` and `cluster_state`: is a node lost, may anything be done."""

from typing import Annotated, Any

from pydantic import Field

from services.central.core.lost_nodes.cluster_state import State, disruption
from services.central.core.lost_nodes.guards import Census, CountedNode, Guards, NodePlace, weigh
from services.central.core.lost_nodes.rules import ACTIONS_PER_S, MAX_BAD_RATIO, Rules
from services.central.core.lost_nodes.verdict import Action, Evidence, NodeVerdict, due, judge, withdrawn
from shared.whatif.decisions import Answer, Question, decision

Seconds = Annotated[float, Field(ge=0)]


class VerdictQuestion(Question):
    """Everything known of one node; null is unknown."""

    bus_well: bool
    silent_s: Seconds | None = None
    api_age_s: Seconds | None = None
    agent_ready: bool | None = None
    agent_not_ready_s: Seconds = 0.0
    node_stale: bool | None = None
    tainted: bool = False
    has_reclaimed_pods: bool = True
    rules: Rules = Rules()


class VerdictAnswer(Answer):
    """The verdict, and what it requests; `withdrawn` null: the node's offer stays unchanged."""

    verdict: NodeVerdict
    action: Action
    withdrawn: bool | None
    explain: dict[str, Any] | None = None


@decision("node_verdict", area="central", asks=VerdictQuestion, answers=VerdictAnswer)
def node_verdict(question: VerdictQuestion) -> VerdictAnswer:
    """Return the verdict on a silent node, and what is due for it."""
    evidence = Evidence(
        bus_well=question.bus_well,
        silent_s=question.silent_s,
        api_age_s=question.api_age_s,
        agent_ready=question.agent_ready,
        agent_not_ready_s=question.agent_not_ready_s,
        node_stale=question.node_stale,
    )
    judged = judge(evidence, question.rules)
    return VerdictAnswer(
        verdict=judged.verdict,
        action=due(
            judged,
            tainted=question.tainted,
            has_reclaimed_pods=question.has_reclaimed_pods,
            rules=question.rules,
        ),
        withdrawn=withdrawn(judged),
        explain={"why": judged.why, "lost_s": judged.lost_s},
    )


class SeenNode(Question):
    """One node as the guards count it; `silent_s` null: not known."""

    name: str
    bad: bool
    silent_s: Seconds | None = None
    pool: str | None = None
    zone: str | None = None


class LookAround(Question):
    """All nodes at one moment; null: it is not known which there are."""

    t_s: float
    nodes: list[SeenNode] | None = None


class GuardsQuestion(Question):
    """One look after another."""

    steps: list[LookAround]
    rules: Rules = Rules()


class GuardsStep(Answer):
    """By scope why nothing may be done there, and how many nodes may be acted on in a second."""

    state: State
    objections: dict[str, list[str]]
    actions_per_s: float


class GuardsAnswer(Answer):
    """One for each look."""

    steps: list[GuardsStep]


@decision("cluster_guards", area="central", asks=GuardsQuestion, answers=GuardsAnswer)
def cluster_guards(question: GuardsQuestion) -> GuardsAnswer:
    """May anything be done to lost nodes, over time?"""
    guards, steps = Guards(), []
    for step in question.steps:
        nodes = None if step.nodes is None else [_seen(node) for node in sorted(step.nodes, key=lambda n: n.name)]
        guards = weigh(None if nodes is None else Census.of(nodes), guards, step.t_s, question.rules)
        objections = {scope: list(reasons) for scope, reasons in guards.objections.items()}
        steps.append(GuardsStep(state=guards.state, objections=objections, actions_per_s=guards.actions_per_s))
    return GuardsAnswer(steps=steps)


def _seen(node: SeenNode) -> CountedNode:
    return CountedNode(node.name, bad=node.bad, silent_s=node.silent_s, place=NodePlace(node.pool, node.zone))


NodeCount = Annotated[int, Field(ge=0)]


class ClusterStateQuestion(Question):
    """How many nodes are ready and how many are not."""

    ready_nodes: NodeCount
    not_ready_nodes: NodeCount
    unhealthy_threshold_ratio: float = MAX_BAD_RATIO
    actions_per_s: Annotated[float, Field(ge=0)] = ACTIONS_PER_S


class ClusterStateAnswer(Answer):
    """The state, and the pace: 0 unless normal."""

    state: State
    actions_per_s: float


@decision("cluster_state", area="central", asks=ClusterStateQuestion, answers=ClusterStateAnswer)
def cluster_state(question: ClusterStateQuestion) -> ClusterStateAnswer:
    """Does central act at all?"""
    found = disruption(
        question.ready_nodes,
        question.not_ready_nodes,
        ratio=question.unhealthy_threshold_ratio,
        actions_per_s=question.actions_per_s,
    )
    return ClusterStateAnswer(state=found.state, actions_per_s=found.actions_per_s)
