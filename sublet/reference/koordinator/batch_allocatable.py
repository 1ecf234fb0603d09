"""Ask for a node's batch resources: the what-if kinds `batch_allocatable` and `degrade_needed`.

The amounts of a node are the reporter's. Those of its NUMA nodes are Koordinator's alone: what is bound to none of them
is split evenly, rounded up.

Facts: docs/facts/koordinator-batch.md#batch-resources-of-numa-nodes.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from services.reporter.core.batch_resources import (
    CPU_RECLAIM_PERCENT,
    DEGRADE_AFTER_S,
    MEMORY_RECLAIM_PERCENT,
    CpuPolicy,
    MemoryPolicy,
    ResourceDemand,
    batch_amount,
    cpu_margin,
    degraded,
    memory_margin,
    terms_of,
)
from shared.core.cpus.cpuset import CpuSet, canonical_cpu_list
from shared.core.pods.koord_qos import KoordQos, PriorityClass
from shared.whatif.decisions import Answer, Question, decision

Amount = Annotated[int, Field(ge=-(1 << 60), le=1 << 60)]
Percent = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]
Age = Annotated[float, Field(ge=-1e12, le=1e12)]
Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]


class CpuAndMemory(Question):
    """An amount of each resource."""

    cpu_millicpu: Amount
    memory_bytes: Amount


class BatchStrategy(Question):
    """The node's colocation strategy."""

    cpu_reclaim_threshold_percent: Percent = CPU_RECLAIM_PERCENT
    memory_reclaim_threshold_percent: Percent = MEMORY_RECLAIM_PERCENT
    cpu_calculate_policy: CpuPolicy = "usage"
    memory_calculate_policy: MemoryPolicy = "usage"
    batch_cpu_threshold_percent: Percent | None = None
    batch_memory_threshold_percent: Percent | None = None


class NodeReservation(Question):
    """What the node's annotation reserves; CPUs by number go before an amount."""

    reserved_cpus: Annotated[str, AfterValidator(canonical_cpu_list)] = ""
    cpu_millicpu: Amount | None = None
    memory_bytes: Amount | None = None


class BatchNode(Question):
    """A node as the API server has it."""

    capacity: CpuAndMemory
    allocatable: CpuAndMemory
    reservation: NodeReservation | None = None

    @property
    def reserved(self) -> CpuAndMemory:
        """What kubelet or the annotation reserves, of each resource the larger."""
        kept = self.reservation or NodeReservation()
        cpus = len(CpuSet.parse(kept.reserved_cpus)) * 1000
        return CpuAndMemory(
            cpu_millicpu=max(
                0, self.capacity.cpu_millicpu - self.allocatable.cpu_millicpu, cpus or kept.cpu_millicpu or 0
            ),
            memory_bytes=max(0, self.capacity.memory_bytes - self.allocatable.memory_bytes, kept.memory_bytes or 0),
        )


class BatchPod(Question):
    """A pod of the node."""

    name: str
    koord_qos: KoordQos | None = None
    priority_class: PriorityClass | None = None
    phase: Phase
    request_cpu_millicpu: Amount
    request_memory_bytes: Amount
    numas: list[int] | None = None


class BatchPodMetric(CpuAndMemory):
    """What a pod uses; its own classes count where there is no such pod."""

    name: str
    priority_class: PriorityClass | None = None
    koord_qos: KoordQos | None = None


class BatchHostApp(CpuAndMemory):
    """What an application outside of pods uses."""

    name: str
    priority_class: PriorityClass | None = None


class BatchZone(Question):
    """A NUMA node."""

    id: int
    allocatable: CpuAndMemory


class BatchAllocatableQuestion(Question):
    """A node, what is measured of it, and the strategy that holds there."""

    strategy: BatchStrategy
    node: BatchNode
    node_metric_age_s: Age | None = None
    degrade_after_s: Age = DEGRADE_AFTER_S
    system_usage: CpuAndMemory | None = None
    pods: list[BatchPod]
    pod_metrics: list[BatchPodMetric]
    host_apps: list[BatchHostApp]
    zones: list[BatchZone] = []

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.system_usage is None and not degraded(self.node_metric_age_s, self.degrade_after_s):
            raise ValueError("system_usage: needed with metrics that are not too old")
        ids = [zone.id for zone in self.zones]
        if len(set(ids)) < len(ids):
            raise ValueError("zones: an id stands twice")
        return self


class BatchAmounts(Answer):
    """What best-effort pods may ask for."""

    batch_cpu_millicpu: int
    batch_memory_bytes: int


class BatchAllocatableAnswer(Answer):
    """The node's batch resources and those of its NUMA nodes; null where the metrics are too old."""

    batch_cpu_millicpu: int | None = None
    batch_memory_bytes: int | None = None
    zones: dict[int, BatchAmounts] | None = None


@decision(
    "batch_allocatable", area="koord_batch_resource", asks=BatchAllocatableQuestion, answers=BatchAllocatableAnswer
)
def batch_allocatable(question: BatchAllocatableQuestion) -> BatchAllocatableAnswer:
    """batch-cpu and batch-memory of a node."""
    if degraded(question.node_metric_age_s, question.degrade_after_s):
        return BatchAllocatableAnswer()
    users = _users(question)
    numas = {zone.id for zone in question.zones}
    zones = {
        zone.id: _amounts(
            question, zone.allocatable, [_in_zone(user, zone.id, numas) for user in users], parts=len(numas)
        )
        for zone in question.zones
    }
    return BatchAllocatableAnswer(**_amounts(question, question.node.capacity, users).model_dump(), zones=zones)


@dataclass(frozen=True, slots=True)
class _User:
    """A pod above batch and free, or a metric of such a pod that is not there; `numas`: what it is bound to."""

    cpu: ResourceDemand
    memory: ResourceDemand
    numas: frozenset[int] = frozenset()


def _users(question: BatchAllocatableQuestion) -> list[_User]:
    metrics = {metric.name: metric for metric in question.pod_metrics}
    here = [pod for pod in question.pods if pod.phase in ("Running", "Pending")]
    users = [_of_pod(pod, metrics.get(pod.name)) for pod in here if _is_high(pod)]
    gone = metrics.keys() - {pod.name for pod in here}
    return users + [
        _User(ResourceDemand(None, metric.cpu_millicpu), ResourceDemand(None, metric.memory_bytes))
        for metric in metrics.values()
        if metric.name in gone and _is_high(metric)
    ]


def _of_pod(pod: BatchPod, metric: BatchPodMetric | None) -> _User:
    cpu_millis = None if metric is None else metric.cpu_millicpu
    memory_bytes = None if metric is None else metric.memory_bytes
    return _User(
        # The CPUs of an LSE pod are its own also while they are idle; its memory is not.
        ResourceDemand(pod.request_cpu_millicpu, cpu_millis, at_request=pod.koord_qos == "LSE"),
        ResourceDemand(pod.request_memory_bytes, memory_bytes),
        frozenset(pod.numas or ()),
    )


def _is_high(one: BatchPod | BatchPodMetric | BatchHostApp) -> bool:
    return one.priority_class not in ("koord-batch", "koord-free")


def _in_zone(user: _User, zone: int, zones: Set[int]) -> _User:
    """Its part in one NUMA node: of those it is bound to that are there, else of all, the same in each."""
    bound = user.numas & zones or zones
    parts = len(bound) if zone in bound else 0
    return _User(_part_of(user.cpu, parts), _part_of(user.memory, parts))


def _part_of(demand: ResourceDemand, parts: int) -> ResourceDemand:
    return replace(
        demand,
        requested=None if demand.requested is None else _part(demand.requested, parts),
        used=None if demand.used is None else _part(demand.used, parts),
    )


def _part(amount: int, parts: int) -> int:
    """One of so many equal parts, rounded up; nothing of none."""
    return -(-amount // parts) if parts else 0


def _amounts(
    question: BatchAllocatableQuestion, capacity: CpuAndMemory, users: Sequence[_User], parts: int = 1
) -> BatchAmounts:
    rules, reserved = question.strategy, question.node.reserved
    system = [question.system_usage, *filter(_is_high, question.host_apps)]
    cpu = terms_of(
        capacity.cpu_millicpu,
        cpu_margin(capacity.cpu_millicpu, rules.cpu_reclaim_threshold_percent),
        _part(sum(one.cpu_millicpu for one in system if one is not None), parts),
        _part(reserved.cpu_millicpu, parts),
        (user.cpu for user in users),
    )
    memory = terms_of(
        capacity.memory_bytes,
        memory_margin(capacity.memory_bytes, rules.memory_reclaim_threshold_percent),
        _part(sum(one.memory_bytes for one in system if one is not None), parts),
        _part(reserved.memory_bytes, parts),
        (user.memory for user in users),
    )
    return BatchAmounts(
        batch_cpu_millicpu=batch_amount(cpu, rules.cpu_calculate_policy, rules.batch_cpu_threshold_percent),
        batch_memory_bytes=batch_amount(memory, rules.memory_calculate_policy, rules.batch_memory_threshold_percent),
    )


class DegradeQuestion(Question):
    """The age of a node's metrics, null where there are none."""

    node_metric_age_s: Age | None = None
    degrade_after_s: Age = DEGRADE_AFTER_S


class DegradeAnswer(Answer):
    """Whether the node's batch resources go."""

    degrade: bool


@decision("degrade_needed", area="koord_batch_resource", asks=DegradeQuestion, answers=DegradeAnswer)
def degrade_needed(question: DegradeQuestion) -> DegradeAnswer:
    """Are the node's metrics too old?"""
    return DegradeAnswer(degrade=degraded(question.node_metric_age_s, question.degrade_after_s))
