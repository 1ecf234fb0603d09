"""The what-if kind `mb_quotas`: how memory bandwidth is shared out in one domain."""

from typing import Annotated

from pydantic import Field

from services.qrm.core.resctrl.quotas import DomainState, QuotaRules, domain_quotas
from services.qrm.whatif.resctrl import AREA
from shared.whatif.decisions import Answer, Question, decision

Amount = Annotated[int, Field(ge=0, le=1 << 40)]
Name = Annotated[str, Field(min_length=1, max_length=255)]


class QuotasQuestion(Question):
    """A domain, and what groups use of it."""

    capacity_mb: Amount
    groups: dict[Name, Amount]
    capacity_percent: dict[Name, int] = {}
    active_mb: Amount = 1000
    weights: dict[Name, int] = {}


class QuotasAnswer(Answer):
    """What each group may use."""

    capacity_mb: int
    order: list[list[str]]
    limits: dict[str, int]
    free_mb: int
    state: DomainState
    quotas: dict[str, int]


@decision("mb_quotas", area=AREA, asks=QuotasQuestion, answers=QuotasAnswer)
def mb_quotas(question: QuotasQuestion) -> QuotasAnswer:
    """How memory bandwidth is shared out in one domain."""
    rules = QuotaRules(question.capacity_mb, question.capacity_percent, question.active_mb, question.weights)
    found = domain_quotas(question.groups, rules)
    return QuotasAnswer(
        capacity_mb=found.capacity_mb,
        order=[list(equals) for equals in found.order],
        limits=dict(found.limits),
        free_mb=found.free_mb,
        state=found.state,
        quotas=dict(found.quotas),
    )
