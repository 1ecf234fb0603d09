"""What a node's tenants and its system take, by one sample: the terms that batch resources are made of.

The sample is one pass over the whole node, so that what the system uses is what the node uses without its pods.
"""

from collections.abc import Callable
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
from shared.contracts.pod import Container, Pod
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


@dataclass(frozen=True, slots=True)
class BatchOffer:
    """Both amounts, and what each is made of."""

    cpu_millis: int
    memory_bytes: int
    cpu: BatchTerms
    memory: BatchTerms


def batch_offer(sample: NodeSample, capacity: NodeCapacity, strategy: ColocationStrategy) -> BatchOffer | None:
    """What best-effort pods may ask for; None where the node's own use is not known: absent is not zero."""
    node = sample.node_reading
    if node.cpu_usage_cores is None or node.memory_total_bytes is None or node.memory_available_bytes is None:
        return None
    pods = [pod for pod in sample.pods if pod.pod.phase in ("Running", "Pending")]
    cpu = terms_of(
        capacity.cpu_millis,
        cpu_margin(capacity.cpu_millis, strategy.cpu_reclaim_percent),
        _system(round(node.cpu_usage_cores * 1000), sample, used_cpu_millis),
        capacity.reserved_cpu_millis,
        [_cpu_demand(pod) for pod in pods if is_high(pod.pod)],
    )
    memory = terms_of(
        capacity.memory_bytes,
        memory_margin(capacity.memory_bytes, strategy.memory_reclaim_percent),
        _system(node.memory_total_bytes - node.memory_available_bytes, sample, lambda pod: pod.memory_usage_bytes),
        capacity.reserved_memory_bytes,
        [ResourceDemand(_asked(pod.pod, _memory), pod.memory_usage_bytes) for pod in pods if is_high(pod.pod)],
    )
    cpu_millis = batch_amount(cpu, strategy.cpu_policy, strategy.cpu_at_most_percent)
    memory_bytes = batch_amount(memory, strategy.memory_policy, strategy.memory_at_most_percent)
    # A node never offers more than it has: the API server's policy would refuse the whole write.
    normalized = min(int(cpu_millis * capacity.cpu_normalization_ratio), capacity.cpu_millis)
    return BatchOffer(normalized, memory_bytes, cpu, memory)


def is_high(pod: Pod) -> bool:
    """Whether a pod's use is taken off: what runs beside tenants always, what runs as reclaimed by its priority."""
    return pod.qos != "reclaimed_cores" or priority_class(pod.labels, pod.priority) in ("koord-prod", "koord-mid")


def used_cpu_millis(pod: PodReading) -> int | None:
    """Of all containers that have a figure; None where none has."""
    known = [one.cpu_usage_cores for one in pod.containers if one.cpu_usage_cores is not None]
    return round(sum(known) * 1000) if known else None


def _cpu_demand(pod: PodReading) -> ResourceDemand:
    # Reclaimed pods never run on the CPUs of a dedicated pod, so what it leaves idle is not there to be lent.
    dedicated = pod.pod.qos == "dedicated_cores"
    return ResourceDemand(_asked(pod.pod, _cpu), used_cpu_millis(pod), at_request=dedicated)


def _system(node_used: int, sample: NodeSample, used: Callable[[PodReading], int | None]) -> int:
    return max(0, node_used - sum(used(pod) or 0 for pod in sample.pods))


def _asked(pod: Pod, amount: Callable[[Container], int]) -> int:
    return together(pod.containers, pod.init_containers, amount)


def _cpu(container: Container) -> int:
    return container.cpu_request_millis


def _memory(container: Container) -> int:
    return container.memory_request_bytes
