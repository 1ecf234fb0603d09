"""The what-if kinds about a lost node: its taint, the pods that it loses, and its CNR's conditions."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from services.central.core.lost_nodes.agent_loss import AgentCondition, AgentConditions, AgentState, Status
from services.central.core.lost_nodes.lost_node import CnrTaint, next_step, with_lost_taint
from services.central.core.lost_nodes.rules import EVICT_S
from shared.contracts.pod import QosClass
from shared.whatif.decisions import Answer, Question, decision


class NodePod(Question):
    """A pod on the node."""

    name: str
    qos: QosClass


def reclaimed(pods: Iterable[NodePod]) -> list[str]:
    """Names of the pods that a lost node loses, ascending."""
    return sorted(pod.name for pod in pods if pod.qos == "reclaimed_cores")


class LostTaintQuestion(Question):
    """The taints of a CNR, and whether its node is lost."""

    taints: list[CnrTaint]
    lost: bool


class LostTaintAnswer(Answer):
    """The taints it should have."""

    taints: list[CnrTaint]
    changed: bool


@decision("lost_node_taint", area="central", asks=LostTaintQuestion, answers=LostTaintAnswer)
def lost_node_taint(question: LostTaintQuestion) -> LostTaintAnswer:
    """The taint of a lost node on its CNR."""
    taints, changed = with_lost_taint(question.taints, lost=question.lost)
    return LostTaintAnswer(taints=taints, changed=changed)


class LostEvictionsQuestion(Question):
    """A node that is not ready, and its pods."""

    tainted: bool
    not_ready_s: float
    evict_period_s: Annotated[float, Field(ge=0)] = EVICT_S
    pods: list[NodePod]


class LostEvictionsAnswer(Answer):
    """Pods to evict, ascending."""

    evict: list[str]


@decision("lost_node_evictions", area="central", asks=LostEvictionsQuestion, answers=LostEvictionsAnswer)
def lost_node_evictions(question: LostEvictionsQuestion) -> LostEvictionsAnswer:
    """Which pods of a lost node go."""
    pods = reclaimed(question.pods)
    step = next_step(
        question.not_ready_s,
        tainted=question.tainted,
        has_reclaimed_pods=bool(pods),
        evict_s=question.evict_period_s,
    )
    return LostEvictionsAnswer(evict=pods if step == "evict" else [])


class ConditionAnswer(Answer):
    """One condition of a CNR."""

    status: Status
    reason: str


class AgentConditionsQuestion(Question):
    """The state of each agent by its selector."""

    agents: dict[str, AgentState]


class AgentConditionsAnswer(Answer):
    """Conditions as they stand in the CNR."""

    AgentNotFound: ConditionAnswer
    AgentReady: ConditionAnswer
    ready: bool


@decision("agent_conditions", area="central", asks=AgentConditionsQuestion, answers=AgentConditionsAnswer)
def agent_conditions(question: AgentConditionsQuestion) -> AgentConditionsAnswer:
    """CNR conditions from the agents' states."""
    found = AgentConditions.of(question.agents)
    return AgentConditionsAnswer(
        AgentNotFound=_condition(found.not_found),
        AgentReady=_condition(found.all_ready),
        ready=found.all_ready.status == "True",
    )


def _condition(found: AgentCondition) -> ConditionAnswer:
    return ConditionAnswer(status=found.status, reason=found.reason)
