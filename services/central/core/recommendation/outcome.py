"""The result of a ResourceRecommend: its conditions, and the figures if there are any."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.central.core.recommendation.advice import (
    AdvisedWorkload,
    ContainerAdvice,
    UsageStanding,
    advise,
    usage_standing,
)
from services.central.core.recommendation.ledger import UsageLedger
from services.central.core.recommendation.objects.resource_recommend import RecommendSeen
from services.central.core.recommendation.objects.status import ConditionDue, unreadable, verdicts
from services.central.core.recommendation.objects.workloads import DeploymentSeen
from services.central.core.recommendation.validity import validity


@dataclass(frozen=True, slots=True)
class RecommendOutcome:
    """The conditions, and the advice for each container; none while anything is missing."""

    verdict: Sequence[ConditionDue]
    advice: Mapping[str, ContainerAdvice] = field(default_factory=dict)


def recommend_outcome(
    seen: RecommendSeen, deployment: DeploymentSeen | None, ledger: UsageLedger, now_s: float, min_history_s: float
) -> RecommendOutcome:
    """Return the result from what the ledger knows now; `deployment` is None if there is no such workload."""
    if seen.wanted is None:
        return RecommendOutcome(unreadable(seen.problem))
    valid = validity(seen.wanted, None if deployment is None else list(deployment.containers))
    if not valid.ok:
        return RecommendOutcome(verdicts(valid, UsageStanding()))
    summaries = ledger.summaries(seen.uid, valid.containers, now_s)
    known = usage_standing(summaries, min_history_s)
    if known.reason:
        return RecommendOutcome(verdicts(valid, known))
    usage = ledger.of(seen.uid)
    kills = [] if usage is None else usage.newest_kills(now_s)
    workload = AdvisedWorkload(seen.namespace, seen.wanted.name)
    return RecommendOutcome(verdicts(valid, known), advise(workload, valid.containers, summaries, kills, now_s))
