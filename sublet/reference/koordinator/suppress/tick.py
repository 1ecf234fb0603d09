"""One tick of suppression (docs/facts/koordinator-cpu-suppress.md#a-tick)."""

from typing import Literal

from services.advisor.core.demand.suppress import NodeCpuUse, SuppressRule, best_effort_budget_millis
from services.advisor.whatif.suppress import Millis, PodCpuUse
from shared.core.cpus.cpuset import CpuSet
from shared.whatif.decisions import Answer, Question, decision
from shared.whatif.topology_input import TopologyInput
from sublet.reference.koordinator.suppress.best_effort_cpus import BeCandidates, CpuList, PolicyStatus, next_cpus
from sublet.reference.koordinator.suppress.quota import PERIOD_US, UNLIMITED, Period, Quota, next_quota_us


class SuppressStrategy(Question):
    """The part of the node's threshold strategy that suppression follows."""

    enable: bool
    policy: Literal["cpuset", "cfsQuota"]
    suppress_threshold_percent: int
    suppress_min_percent: int | None = None

    @property
    def rule(self) -> SuppressRule:
        """How busy the node may be."""
        return SuppressRule(self.suppress_threshold_percent, self.suppress_min_percent)


class TickQuestion(Question):
    """One moment of the node; null: not known."""

    node_capacity_millicpu: Millis | None = None
    node_used_millicpu: Millis | None = None
    pods: list[PodCpuUse]
    topology: TopologyInput
    strategy: SuppressStrategy
    be_cpu_manager_enabled: bool = False
    current_be_cpuset: CpuList
    current_be_quota_us: Quota
    period_us: Period = PERIOD_US

    @property
    def use(self) -> NodeCpuUse | None:
        """The node's CPU and its use; None while either is not known."""
        if self.node_capacity_millicpu is None or self.node_used_millicpu is None:
            return None
        return NodeCpuUse(self.node_capacity_millicpu, self.node_used_millicpu)


class TickAnswer(Answer):
    """Quota and CPUs after the tick, what each policy has done, and which pods keep CPUs of their own."""

    be_quota_us: int
    cfs_policy_status: PolicyStatus | None
    be_cpuset: str
    cpuset_policy_status: PolicyStatus | None
    left_alone: list[str]


@decision("suppress_tick", area="koord_cpu_suppress", asks=TickQuestion, answers=TickAnswer)
def suppress_tick(question: TickQuestion) -> TickAnswer:
    """A whole tick after Koordinator: budget, policy in use, recovery of the other one."""
    everything = question.topology.topology.all
    if question.be_cpu_manager_enabled or not question.strategy.enable:
        return _answer(question, UNLIMITED, everything, "recovered", "recovered")
    current = CpuSet.parse(question.current_be_cpuset)
    if question.use is None:
        return _answer(question, question.current_be_quota_us, current, None, None)
    budget = best_effort_budget_millis(question.use, [pod.use for pod in question.pods], question.strategy.rule)
    if question.strategy.policy == "cfsQuota":
        quota_us = next_quota_us(question.use.capacity_millis, question.period_us, budget, question.current_be_quota_us)
        return _answer(question, quota_us, everything, "using", "recovered")
    cpus = next_cpus(question.topology.topology, BeCandidates(CpuSet(), everything), current, budget)
    return _answer(question, UNLIMITED, cpus, "recovered", "using")


def _answer(
    question: TickQuestion, quota_us: int, cpus: CpuSet, cfs: PolicyStatus | None, cpuset: PolicyStatus | None
) -> TickAnswer:
    own = {pod.name for pod in question.pods if pod.best_effort and pod.numa_bound}
    return TickAnswer(
        be_quota_us=quota_us,
        cfs_policy_status=cfs,
        be_cpuset=str(cpus),
        cpuset_policy_status=cpuset,
        left_alone=sorted(own) if question.be_cpu_manager_enabled else [],
    )
