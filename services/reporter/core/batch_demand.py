"""Computes what a node's tenants and its system take, from one sample: the terms of batch resources.

The sample is one pass over the whole node, so the system's use is the node's use without its pods.

Facts: docs/facts/koordinator-host-applications.md#what-their-use-counts-for.
"""

from dataclasses import dataclass

from services.reporter.core.batch_resources import (
    CPU_RECLAIM_PERCENT,
    MEMORY_RECLAIM_PERCENT,
    BatchTerms,
    CpuPolicy,
    MemoryPolicy,
    ResourceDemand,
    batch_amount,
    cpu_margin,
    memory_margin,
    terms_of,
)
from services.reporter.core.node_capacity import NodeCapacity
from shared.contracts.pod import Pod
from shared.contracts.sample import NodeSample, PodReading
from shared.core.pods.containers import together
from shared.core.pods.koord_qos import priority_class


@dataclass(frozen=True, slots=True)
class ColocationStrategy:
    """How much of a node is lent, and by which figures that is found."""

    cpu_reclaim_percent: int = CPU_RECLAIM_PERCENT
    memory_reclaim_percent: int = MEMORY_RECLAIM_PERCENT
    cpu_policy: CpuPolicy = "usage"
    memory_policy: MemoryPolicy = "usage"
    cpu_at_most_percent: int | None = None
    memory_at_most_percent: int | None = None
    mid_is_sold: bool = False
    """Whether mid pods are sold what they ask for: then it is not lent, used or not."""


@dataclass(frozen=True, slots=True)
class BatchOffer:
    """Both amounts, and what each is made of."""

    cpu_millis: int
    memory_bytes: int
    cpu: BatchTerms
    memory: BatchTerms


def batch_offer(sample: NodeSample, capacity: NodeCapacity, strategy: ColocationStrategy) -> BatchOffer | None:
    """Return what best-effort pods may request; None if the node's own use is unknown: absent is not zero."""
    system = _system_without_lent(sample)
    if system is None:
        return None
    pods = [one for one in sample.pods if one.pod.phase in ("Running", "Pending") and is_high(one.pod)]
    # What was sold to a mid pod, and what it uses beyond that, must not be sold again.
    sold = {one.pod.uid for one in pods if strategy.mid_is_sold and is_mid(one.pod)}
    cpu = terms_of(
        capacity.cpu_millis,
        cpu_margin(capacity.cpu_millis, strategy.cpu_reclaim_percent),
        system[0],
        capacity.reserved_cpu_millis,
        [_as_sold(_cpu_demand(one), one.pod.uid in sold) for one in pods],
    )
    memory = terms_of(
        capacity.memory_bytes,
        memory_margin(capacity.memory_bytes, strategy.memory_reclaim_percent),
        system[1],
        capacity.reserved_memory_bytes,
        [_as_sold(_memory_demand(one), one.pod.uid in sold) for one in pods],
    )
    cpu_millis = batch_amount(cpu, strategy.cpu_policy, strategy.cpu_at_most_percent)
    memory_bytes = batch_amount(memory, strategy.memory_policy, strategy.memory_at_most_percent)
    # A node never offers more than it has: the API server's policy would refuse the whole write.
    normalized = min(int(cpu_millis * capacity.cpu_normalization_ratio), capacity.cpu_millis)
    return BatchOffer(normalized, memory_bytes, cpu, memory)


def is_high(pod: Pod) -> bool:
    """Return whether a pod's use is subtracted: pods that run next to tenants always, reclaimed pods by their
    priority."""
    return pod.qos != "reclaimed_cores" or priority_class(pod.labels, pod.priority) in ("koord-prod", "koord-mid")


def is_mid(pod: Pod) -> bool:
    """Whether the pod is of Koordinator's class mid, by label or priority."""
    return priority_class(pod.labels, pod.priority) == "koord-mid"


def system_used(sample: NodeSample) -> tuple[int, int] | None:
    """Milli-cores and bytes used by what is no pod; None where the node's own use is not known."""
    node = sample.node_reading
    if node.cpu_usage_cores is None or node.memory_total_bytes is None or node.memory_available_bytes is None:
        return None
    cpu_millis = round(node.cpu_usage_cores * 1000) - sum(used_cpu_millis(pod) or 0 for pod in sample.pods)
    in_use = node.memory_total_bytes - node.memory_available_bytes
    return max(0, cpu_millis), max(0, in_use - sum(pod.memory_usage_bytes or 0 for pod in sample.pods))


def _system_without_lent(sample: NodeSample) -> tuple[int, int] | None:
    """The system's use without applications of the host that use batch resources themselves, as batch pods do."""
    system, lent = system_used(sample), [one for one in sample.host_applications if one.lent]
    if system is None:
        return None
    cpu_millis = sum(one.cpu_used_millis or 0 for one in lent)
    return max(0, system[0] - cpu_millis), max(0, system[1] - sum(one.memory_used_bytes or 0 for one in lent))


def used_cpu_millis(pod: PodReading) -> int | None:
    """Of all containers that have a figure; None where none has."""
    known = [one.cpu_usage_cores for one in pod.containers if one.cpu_usage_cores is not None]
    return round(sum(known) * 1000) if known else None


def asked_cpu_millis(pod: Pod) -> int:
    """Return what the pod requests, as a scheduler counts it."""
    return together(pod.containers, pod.init_containers, lambda one: one.cpu_request_millis)


def asked_memory_bytes(pod: Pod) -> int:
    """Return what the pod requests, as a scheduler counts it."""
    return together(pod.containers, pod.init_containers, lambda one: one.memory_request_bytes)


def _cpu_demand(pod: PodReading) -> ResourceDemand:
    # Reclaimed pods never run on the CPUs of a dedicated pod, so what it leaves idle is not there to be lent.
    dedicated = pod.pod.qos == "dedicated_cores"
    return ResourceDemand(asked_cpu_millis(pod.pod), used_cpu_millis(pod), at_request=dedicated)


def _memory_demand(pod: PodReading) -> ResourceDemand:
    return ResourceDemand(asked_memory_bytes(pod.pod), pod.memory_usage_bytes)


def _as_sold(demand: ResourceDemand, sold: bool) -> ResourceDemand:
    return ResourceDemand(demand.requested, demand.larger) if sold else demand
