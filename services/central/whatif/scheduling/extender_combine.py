"""The what-if kind `extender_combine`: what the stock scheduler makes of extenders (no service decides this)."""

from collections.abc import Iterable

from pydantic import Field

from services.central.whatif.scheduling import AREA
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision

SCORE_PER_POINT = 10
"""An extender's points go to 10, the scheduler's scores to 100."""


class FilterReply(Question):
    """An extender's answer to `filter`."""

    nodes: list[str] = []
    failed: dict[str, str] = {}
    unresolvable: list[str] = []
    error: str = ""


class HostScore(Question):
    """One row of what an extender answered to `prioritize`."""

    host: str = Field(alias="Host")
    score: int = Field(alias="Score")


class ExtenderAsked(Question):
    """An extender and its answers; `filter` null: it filters nothing; a text for `prioritize`: it failed."""

    name: str
    interested: bool = True
    ignorable: bool = False
    weight: int = 1
    filter: FilterReply | None = None
    prioritize: list[HostScore] | str = []


class ExtenderCombineQuestion(Question):
    """The nodes that the scheduler itself would take, and extenders in order."""

    nodes: list[str]
    in_tree_scores: dict[str, int] = {}
    extenders: list[ExtenderAsked] = []


class ExtenderCombineAnswer(Answer):
    """Where the pod may go, and where it goes."""

    feasible: list[str] | None
    totals: dict[str, int] | None
    best: list[str] | None
    failed: dict[str, str] | None
    unresolvable: list[str] | None
    error: str | None = None
    message: str | None = None


@decision("extender_combine", area=AREA, asks=ExtenderCombineQuestion, answers=ExtenderCombineAnswer)
def extender_combine(question: ExtenderCombineQuestion) -> ExtenderCombineAnswer:
    """What does the stock scheduler conclude from its extenders' answers?"""
    asked = [extender for extender in question.extenders if extender.interested]
    feasible = set(question.nodes)
    failed: dict[str, str] = {}
    unresolvable: set[str] = set()
    for extender in asked:
        if not feasible:
            break
        reply = _filtered(extender, feasible)
        if reply is not None:
            feasible = set(reply.nodes)
            unresolvable |= set(reply.unresolvable)
            failed |= {name: why for name, why in reply.failed.items() if name not in reply.unresolvable}
    totals = _totals(feasible, question.in_tree_scores, asked)
    return ExtenderCombineAnswer(
        feasible=sorted(feasible),
        totals=totals,
        best=[name for name, total in totals.items() if total == max(totals.values())],
        failed=failed,
        unresolvable=sorted(unresolvable),
    )


def _filtered(extender: ExtenderAsked, feasible: set[str]) -> FilterReply | None:
    """The answer; None: the extender leaves the nodes as they are.

    Raises:
        Refused: it failed, or names a node that it was not asked about, and may not be ignored.
    """
    reply = extender.filter
    if reply is None:
        return None
    strange = sorted(set(reply.nodes) - feasible)
    if not reply.error and not strange:
        return reply
    if extender.ignorable:
        return None
    why = reply.error or f"it names nodes that it was not asked about: {', '.join(strange)}"
    raise Refused(f"extender {extender.name}: {why}; the pod is tried again later", reason="extender_failed")


def _totals(feasible: set[str], in_tree: dict[str, int], extenders: Iterable[ExtenderAsked]) -> dict[str, int]:
    totals = {name: in_tree.get(name, 0) for name in sorted(feasible)}
    if len(totals) <= 1:
        return totals
    for extender in extenders:
        for row in extender.prioritize if isinstance(extender.prioritize, list) else ():
            if row.host in totals:
                totals[row.host] += row.score * extender.weight * SCORE_PER_POINT
    return totals
