"""One workload while its recording is read: its ResourceRecommend, the figures in its status, and what was used."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from services.central.core.recommendation.advice import ContainerAdvice
from services.central.core.recommendation.ledger import UsageLedger
from services.central.core.recommendation.objects.resource_recommend import RecommendSeen
from services.central.core.recommendation.objects.status import (
    ConditionDue,
    figures_due,
    recommendation,
    status_due,
    written_targets,
)
from services.central.core.recommendation.objects.workloads import DeploymentSeen
from services.central.core.recommendation.outcome import recommend_outcome
from services.central.core.recommendation.request import BUFFER_PERCENT
from services.central.core.recommendation.validity import (
    EVERY_OTHER,
    RESOURCES,
    ContainerPolicy,
    ResourcePolicy,
    WantedRecommendation,
    validity,
)
from shared.contracts.pod import Container, Pod
from sublet.replay.requests.tally import STEPS, Amounts, GivenFigures, UseTally
from sublet.replay.requests.workloads import DEPLOYMENT, RecordedWorkload, as_deployment

MAX_GIVEN = 10_000
"""Figures of one workload that are kept: years of them."""


@dataclass(frozen=True, slots=True)
class RequestRules:
    """What a ResourceRecommend would say, and central's settings."""

    buffer_percent: int = BUFFER_PERCENT
    min_history_s: float = 86_400.0
    refresh_s: float = 3600.0
    pass_s: float = 30.0


@dataclass(slots=True)
class WatchedWorkload:
    """A workload, what it asks for, and what it was given."""

    workload: RecordedWorkload
    deployment: DeploymentSeen
    seen: RecommendSeen
    rules: RequestRules
    pods: int = 0
    """Most that were there at a time."""
    tallies: dict[tuple[str, str], UseTally] = field(default_factory=dict)
    """By container and resource."""
    given: list[GivenFigures] = field(default_factory=list)
    _template: tuple[Container, ...] = ()
    _held: dict[str, GivenFigures] = field(default_factory=dict)
    """Those of `given` that are in the status now, by container."""

    @classmethod
    def of(cls, workload: RecordedWorkload, pod: Pod, rules: RequestRules) -> "WatchedWorkload":
        """A workload with a ResourceRecommend for all of its containers."""
        resources = [ResourcePolicy(name, rules.buffer_percent) for name in RESOURCES]
        namespace, name = workload.key
        # Figures are wanted of other kinds too; `hindrance` says that a ResourceRecommend gives none.
        wanted = WantedRecommendation(DEPLOYMENT, name, "", [ContainerPolicy(EVERY_OTHER, resources)])
        seen = RecommendSeen(workload.uid, namespace, workload.name, generation=1, wanted=wanted)
        return cls(workload, as_deployment(workload, pod), seen, rules)

    def see(self, pod: Pod) -> None:
        """Take the pod's containers for those of the template: a rollout changes them."""
        if self._template != pod.containers:
            self._template, self.deployment = pod.containers, as_deployment(self.workload, pod)

    def count(self, pod: Pod, container: str, used: Amounts, covers_s: float) -> None:
        """Count what one container used in the time of a frame."""
        asked = self.deployment.containers.get(container)
        for resource, amount in used.items():
            key = (container, resource)
            tally = self.tallies.setdefault(key, UseTally(STEPS[resource]))
            tally.add(amount, None if asked is None else asked.requests.get(resource), covers_s)
        if (held := self._held.get(container)) is not None and covers_s > 0:
            held.add(pod.uid, used, covers_s)

    def decide(self, ledger: UsageLedger, at_s: float, now: datetime) -> None:
        """Give new figures where central would have written them."""
        outcome = recommend_outcome(self.seen, self.deployment, ledger, now.timestamp(), self.rules.min_history_s)
        if not outcome.advice or not figures_due(self.seen, outcome.advice, now, self.rules.refresh_s):
            return
        status = status_due(self.seen, outcome.verdict, recommendation(outcome.advice, {}), now)
        self.seen = replace(self.seen, status=status or self.seen.status)
        for container, target in sorted(written_targets(self.seen.status).items()):
            self._give(container, target, at_s)

    def _give(self, container: str, target: Amounts, at_s: float) -> None:
        before = self._held.get(container)
        if before is not None:
            if before.target == target:
                return
            before.until_s = at_s
        self._held[container] = GivenFigures(container, at_s, target)
        if len(self.given) < MAX_GIVEN:
            self.given.append(self._held[container])

    def advice(self, ledger: UsageLedger, now_s: float) -> dict[str, ContainerAdvice]:
        """What is known now, however short the history is."""
        return dict(recommend_outcome(self.seen, self.deployment, ledger, now_s, 0.0).advice)

    def hindrance(self, ledger: UsageLedger, now_s: float) -> ConditionDue | None:
        """Why a ResourceRecommend would say nothing now; None: it would say the figures."""
        kind = self.workload.kind
        wanted = None if self.seen.wanted is None else replace(self.seen.wanted, kind=kind)
        valid = None if wanted is None else validity(wanted, list(self.deployment.containers))
        if valid is not None and not valid.ok:
            return ConditionDue("Validated", False, valid.code, valid.said)
        outcome = recommend_outcome(self.seen, self.deployment, ledger, now_s, self.rules.min_history_s)
        return next((one for one in outcome.verdict if not one.holds), None)
