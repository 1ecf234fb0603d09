"""The CPU time of best-effort pods under a quota (docs/facts/koordinator-cpu-suppress.md#the-policy-cfsquota)."""

from typing import Annotated

from pydantic import Field

from services.advisor.whatif.suppress import Millis
from shared.whatif.decisions import Answer, Question, decision
from sublet.reference.koordinator.suppress.best_effort_cpus import PolicyStatus

PERIOD_US = 100_000
MIN_QUOTA_US = 2000
UNLIMITED = -1
Quota = Annotated[int, Field(ge=UNLIMITED)]
Period = Annotated[int, Field(gt=0)]


def next_quota_us(capacity_millis: int, period_us: int, budget_millis: int, current_us: int) -> int:
    """The quota for a budget: at least 2 ms, grown by a tenth of the machine at most; small changes are left out.

    A quota that was unlimited has nothing to grow from. It is compared as -1 all the same, so on a large machine a
    small first quota counts as a small change and is left out.
    """
    machine_us_milli = capacity_millis * period_us
    target_us = max(budget_millis * period_us // 1000, MIN_QUOTA_US)
    # A hundredth of the machine, and a tenth of it, in whole numbers.
    if abs(target_us - current_us) * 100_000 < machine_us_milli and target_us != MIN_QUOTA_US:
        return current_us
    if (target_us - current_us) * 10_000 > machine_us_milli and current_us != UNLIMITED:
        return current_us + machine_us_milli // 10_000
    return target_us


class QuotaAdjustQuestion(Question):
    """What suppression leaves to best-effort pods, and their quota now."""

    node_capacity_millicpu: Millis
    period_us: Period = PERIOD_US
    budget_millicpu: int
    current_be_quota_us: Quota


class QuotaAdjustAnswer(Answer):
    """Their quota from now on."""

    be_quota_us: int


@decision("cfs_quota_adjust", area="koord_cpu_suppress", asks=QuotaAdjustQuestion, answers=QuotaAdjustAnswer)
def cfs_quota_adjust(question: QuotaAdjustQuestion) -> QuotaAdjustAnswer:
    """The next best-effort quota for a budget, after Koordinator."""
    return QuotaAdjustAnswer(
        be_quota_us=next_quota_us(
            question.node_capacity_millicpu,
            question.period_us,
            question.budget_millicpu,
            question.current_be_quota_us,
        )
    )


class QuotaRecoverQuestion(Question):
    """The quota now, and what the policy cfsQuota had done so far."""

    current_be_quota_us: Quota
    policy_status: PolicyStatus | None = None


class QuotaRecoverAnswer(Answer):
    """The quota without suppression."""

    be_quota_us: int
    policy_status: PolicyStatus


@decision("cfs_quota_recover", area="koord_cpu_suppress", asks=QuotaRecoverQuestion, answers=QuotaRecoverAnswer)
def cfs_quota_recover(question: QuotaRecoverQuestion) -> QuotaRecoverAnswer:
    """The quota when suppression by quota ends, after Koordinator."""
    # Once: a quota that somebody else has set since is his.
    recovered = question.policy_status == "recovered"
    return QuotaRecoverAnswer(
        be_quota_us=question.current_be_quota_us if recovered else UNLIMITED, policy_status="recovered"
    )
