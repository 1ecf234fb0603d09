"""The kinds `condition_taints` and `condition_hold`: taints from the node's conditions, and how long one is held."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from services.evictor.core.taints.conditions import TRANSITION_PERIOD_S, still_held, taint_of
from shared.whatif.decisions import Answer, Question, decision

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
    named = [(c.name, c.type, effect) for c in question.conditions for effect in c.effects]
    of_node = _taints((name, effect) for name, kind, effect in named if kind == "NODE")
    of_level = ((name, kind, *effect.partition("/")) for name, kind, effect in named)
    of_cnr = _taints((name, effect) for name, kind, level, _, effect in of_level if (kind, level) == _OF_CNR)
    return TaintsAnswer(
        cnr_taints=[CnrMark(qos_level=TAINTED_CLASS, key=key, effect=effect) for key, effect in of_cnr],
        node_taints=[NodeMark(key=key, effect=effect) for key, effect in of_node],
    )


_OF_CNR = ("CNR", TAINTED_CLASS)


def _taints(conditions: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each taint once, ascending by key and effect."""
    found = (taint_of(name, effect) for name, effect in conditions)
    return sorted({taint for taint in found if taint is not None})


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
