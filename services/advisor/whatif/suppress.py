"""The what-if kind `be_cpu_budget`: how much CPU suppression leaves to best-effort pods."""

from typing import Annotated

from pydantic import Field

from services.advisor.core.demand.suppress import (
    SUPPRESS_THRESHOLD_PERCENT,
    NodeCpuUse,
    SuppressRule,
    WorkloadUse,
    best_effort_budget_millis,
)
from shared.contracts.pod import KubeQos
from shared.core.pods.koord_qos import KoordQos
from shared.whatif.decisions import Answer, Question, decision

Millis = Annotated[int, Field(ge=0)]


class PodCpuUse(Question):
    """A pod's CPU use and classes; with `known` false there is a metric but no pod object."""

    name: str
    cpu_used_millicpu: Millis
    known: bool
    koord_qos: KoordQos | None = None
    kube_qos: KubeQos | None = None
    numa_bound: bool = False

    @property
    def best_effort(self) -> bool:
        """By label or by Kubernetes class; a metric without a pod counts with the others."""
        return self.known and "BE" in (self.koord_qos, "BE" if self.kube_qos == "BestEffort" else None)

    @property
    def use(self) -> WorkloadUse:
        """Return its use as the rule counts it."""
        return WorkloadUse(self.cpu_used_millicpu, self.best_effort)


class HostAppUse(Question):
    """An application of the host, outside of all pods."""

    name: str
    koord_qos: KoordQos | None = None
    cpu_used_millicpu: Millis


class CpuBudgetQuestion(Question):
    """The node, what runs on it, and the strategy's percents."""

    node_capacity_millicpu: Millis
    node_allocatable_millicpu: Millis | None = None
    node_reserved_millicpu: Millis = 0
    node_used_millicpu: Millis
    pods: list[PodCpuUse]
    host_apps: list[HostAppUse] = []
    suppress_threshold_percent: int = SUPPRESS_THRESHOLD_PERCENT
    suppress_min_percent: int | None = None


class CpuBudgetAnswer(Answer):
    """The budget; negative if the others use more than the threshold allows."""

    be_budget_millicpu: int


@decision("be_cpu_budget", area="koord_cpu_suppress", asks=CpuBudgetQuestion, answers=CpuBudgetAnswer)
def be_cpu_budget(question: CpuBudgetQuestion) -> CpuBudgetAnswer:
    """CPU left for best-effort pods, after Koordinator."""
    capacity = question.node_capacity_millicpu
    allocatable = capacity if question.node_allocatable_millicpu is None else question.node_allocatable_millicpu
    reserved = max(capacity - allocatable, question.node_reserved_millicpu)
    workloads = [pod.use for pod in question.pods]
    workloads += [WorkloadUse(app.cpu_used_millicpu, app.koord_qos == "BE") for app in question.host_apps]
    return CpuBudgetAnswer(
        be_budget_millicpu=best_effort_budget_millis(
            NodeCpuUse(capacity, question.node_used_millicpu, reserved),
            workloads,
            SuppressRule(question.suppress_threshold_percent, question.suppress_min_percent),
        )
    )
