"""The what-if kinds `load_filter` and `load_score`: is a node too hot for a pod, and how cool is it?"""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from services.central.core.scheduling.load.estimate import FACTORS, estimate
from services.central.core.scheduling.load.expected_use import (
    REPORT_INTERVAL_S,
    Aggregate,
    AssignedPod,
    ExpectedUse,
    LoadReport,
    UsedByPod,
    together,
)
from services.central.core.scheduling.load.filter import (
    EXPIRATION_S,
    PASSES,
    THRESHOLDS,
    Ceiling,
    LoadLimits,
    LoadVerdict,
    judge_age,
    judge_load,
)
from services.central.core.scheduling.load.score import WEIGHTS, load_score
from services.central.whatif.scheduling import AREA
from services.central.whatif.scheduling.pods import Amounts
from shared.whatif.decisions import Answer, Question, decision

Seconds = Annotated[float, Field(ge=0)]
Percents = dict[str, int]


class AggregatedUse(Question):
    """A percentile of a node's use over a time."""

    type: str
    duration_s: Seconds
    usage: Amounts


class ReportedPod(Question):
    """Use of a pod."""

    name: str
    usage: Amounts
    prod: bool = False


class NodeReport(Question):
    """A node's report, `age_s` ago."""

    age_s: Seconds
    usage: Amounts
    aggregated: list[AggregatedUse] = []
    pods: list[ReportedPod] = []
    report_interval_s: Seconds = REPORT_INTERVAL_S

    @property
    def report(self) -> LoadReport:
        """Return the report relative to now, which is second 0."""
        return LoadReport(
            measured_s=-self.age_s,
            usage=self.usage,
            aggregated={(one.type, one.duration_s): one.usage for one in self.aggregated},
            pods={pod.name: UsedByPod(pod.usage, pod.prod) for pod in self.pods},
            interval_s=self.report_interval_s,
        )


class LoadedNode(Question):
    """A node; `metric` null: it never reported."""

    allocatable: Amounts
    metric: NodeReport | None = None


class ArrivingPod(Question):
    """The pod that looks for a place."""

    name: str
    requests: Amounts
    limits: Amounts
    prod: bool = False
    daemonset: bool = False


class PodThere(Question):
    """A pod on the node; `assigned_s_ago` null: long ago."""

    name: str
    requests: Amounts
    limits: Amounts
    prod: bool = False
    assigned_s_ago: Seconds | None = None


class NodeLoadQuestion(Question):
    """A node, its pods, and one more."""

    node: LoadedNode
    pod: ArrivingPod
    pods: list[PodThere] = []
    estimate_factors: Percents = dict(FACTORS)
    metric_expiration_s: Seconds = EXPIRATION_S
    filter_expired: bool = True
    schedule_when_expired: bool = False

    def estimate(self, pod: ArrivingPod | PodThere) -> dict[str, int]:
        """Return the expected use of the pod."""
        return estimate(pod.requests, pod.limits, self.estimate_factors)

    def expected(self, metric: NodeReport, aggregate: Aggregate | None) -> ExpectedUse:
        """Return the expected use of the node's pods."""
        pods = [
            AssignedPod(pod.name, self.estimate(pod), pod.prod, None if ago_s is None else -ago_s)
            for pod in self.pods
            for ago_s in (pod.assigned_s_ago,)
        ]
        return ExpectedUse.of(metric.report, pods, aggregate)


class AggregatedThresholds(Question):
    """Thresholds of a percentile."""

    thresholds: Percents
    type: str
    duration_s: Seconds | None = None


class LoadFilterQuestion(NodeLoadQuestion):
    """With thresholds in percent; 0 is off."""

    thresholds: Percents = dict(THRESHOLDS)
    prod_thresholds: Percents = {}
    aggregated: AggregatedThresholds | None = None

    @property
    def limits(self) -> LoadLimits:
        """As the rule takes them."""
        limits = LoadLimits(
            self.thresholds,
            self.prod_thresholds,
            expiration_s=self.metric_expiration_s,
            filter_expired=self.filter_expired,
            schedule_when_expired=self.schedule_when_expired,
        )
        if (of := self.aggregated) is None:
            return limits
        return replace(limits, aggregated_thresholds=of.thresholds, aggregate=Aggregate(of.type, of.duration_s))


class LoadFilterAnswer(Answer):
    """Whether the node takes the pod; `estimated` null: nothing was weighed."""

    fits: bool
    reason: str | None
    estimated: Amounts | None
    usage_percent: Percents


@decision("load_filter", area=AREA, asks=LoadFilterQuestion, answers=LoadFilterAnswer)
def load_filter(question: LoadFilterQuestion) -> LoadFilterAnswer:
    """Is the node too hot for this pod?"""
    found = _verdict(question)
    estimated = None if found.estimated is None else dict(found.estimated)
    return LoadFilterAnswer(
        fits=found.fits, reason=found.reason, estimated=estimated, usage_percent=dict(found.usage_percent)
    )


def _verdict(question: LoadFilterQuestion) -> LoadVerdict:
    limits, metric, pod = question.limits, question.node.metric, question.pod
    ceiling = Ceiling.of(limits, prod=pod.prod, daemonset=pod.daemonset)
    if ceiling is None or metric is None:
        return PASSES
    expired = judge_age(metric.age_s, limits)
    if expired is not None:
        return expired
    aggregate = limits.aggregate if ceiling.measure == "aggregated_usage" else None
    return judge_load(ceiling, question.estimate(pod), question.expected(metric, aggregate), question.node.allocatable)


class AggregateAsked(Question):
    """The percentile that counts."""

    type: str
    duration_s: Seconds | None = None


class LoadScoreQuestion(NodeLoadQuestion):
    """With weights of resources."""

    aggregated: AggregateAsked | None = None
    weights: dict[str, int] = dict(WEIGHTS)
    dominant_weight: int = 0
    by_prod_usage: bool = False


class LoadScoreAnswer(Answer):
    """The score, 0 to 100; `estimated` null: nothing was weighed."""

    score: int
    estimated: Amounts | None


@decision("load_score", area=AREA, asks=LoadScoreQuestion, answers=LoadScoreAnswer)
def load_score_of_node(question: LoadScoreQuestion) -> LoadScoreAnswer:
    """How cool is the node?"""
    metric, pod = question.node.metric, question.pod
    if metric is None or metric.age_s >= question.metric_expiration_s:
        return LoadScoreAnswer(score=0, estimated=None)
    of = question.aggregated
    expected = question.expected(metric, None if of is None else Aggregate(of.type, of.duration_s))
    known = expected.prod if question.by_prod_usage and pod.prod else expected.everything
    estimated = together(known, question.estimate(pod))
    score = load_score(estimated, question.node.allocatable, question.weights, question.dominant_weight)
    return LoadScoreAnswer(score=score, estimated=estimated)
