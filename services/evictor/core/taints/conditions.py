"""The node's conditions as taints, and how long one is held (docs/facts/katalyst-eviction.md#conditions-and-taints)."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from shared.contracts.kube.taint import EFFECTS, TAINT_PREFIX
from shared.core.decisions import Answer, Question, decision

TRANSITION_PERIOD_S = 300.0
"""Katalyst's eviction-condition-transition-period."""
TAINTED_CLASS = "reclaimed_cores"
"""The only QoS level that a CNR's taint may name."""


class NodeCondition(Question):
    """A condition of the node (taints for everybody) or of its CNR (taints for a QoS level, `<level>/<effect>`)."""

    name: Annotated[str, Field(min_length=1)]
    type: Literal["NODE", "CNR"]
    effects: list[str]


class NodeMark(Answer):
    """A taint of the Node."""

    key: str
    effect: str


class CnrMark(Answer):
    """A taint of the CNR."""

    qos_level: str
    key: str
    effect: str


def node_marks(conditions: Iterable[NodeCondition]) -> list[NodeMark]:
    """The Node's taints, each once, ascending by key and effect, without effects that Kubernetes does not have."""
    pairs = {
        (f"{TAINT_PREFIX}{condition.name}", effect)
        for condition in conditions
        if condition.type == "NODE"
        for effect in condition.effects
        if effect in EFFECTS
    }
    return [NodeMark(key=key, effect=effect) for key, effect in sorted(pairs)]


def cnr_marks(conditions: Iterable[NodeCondition]) -> list[CnrMark]:
    """The CNR's taints, likewise; only reclaimed pods can be kept away by one."""
    pairs = set()
    for condition in conditions:
        if condition.type != "CNR":
            continue
        for said in condition.effects:
            level, _, effect = said.partition("/")
            if level == TAINTED_CLASS and effect in EFFECTS:
                pairs.add((f"{TAINT_PREFIX}{condition.name}", effect))
    return [CnrMark(qos_level=TAINTED_CLASS, key=key, effect=effect) for key, effect in sorted(pairs)]


class TaintsQuestion(Question):
    """The conditions that are held."""

    conditions: list[NodeCondition]


class TaintsAnswer(Answer):
    """Taints, ascending by key and effect."""

    cnr_taints: list[CnrMark]
    node_taints: list[NodeMark]


@decision("condition_taints", area="central", asks=TaintsQuestion, answers=TaintsAnswer)
def condition_taints(question: TaintsQuestion) -> TaintsAnswer:
    """Taints from the evictor's conditions."""
    return TaintsAnswer(cnr_taints=cnr_marks(question.conditions), node_taints=node_marks(question.conditions))


def still_held(last_observed_s: float, now_s: float, transition_period_s: float) -> bool:
    """Whether a condition seen last at that time is held: for less than the whole period."""
    return now_s - last_observed_s < transition_period_s


class HoldQuestion(Question):
    """Readings of one monotonic clock."""

    last_observed_s: float
    now_s: float
    transition_period_s: Annotated[float, Field(ge=0)] = TRANSITION_PERIOD_S


class HoldAnswer(Answer):
    """Whether the condition is held."""

    held: bool


@decision("condition_hold", area="central", asks=HoldQuestion, answers=HoldAnswer)
def condition_hold(question: HoldQuestion) -> HoldAnswer:
    """Is a condition still held that has not been seen for a while?"""
    return HoldAnswer(held=still_held(question.last_observed_s, question.now_s, question.transition_period_s))
