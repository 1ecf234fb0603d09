"""What a pod's cgroups shall have for what the pod asks for: weight and memory limit, pod and containers.

The formulas are kubelet's, of native amounts (`ResourceConfigForPod`); here they hold for reclaimed and mid amounts
too, which kubelet does not know as such (docs/facts/koordinator-batch.md#cgroup-values-of-best-effort-pods). A CPU
quota they have only where the settings say so: CPU that nobody else wants is theirs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import shares_of_millis
from shared.core.cgroups.layout import Layout
from shared.core.pods.containers import together
from shared.core.pods.koord_qos import priority_class


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Weight (in CPU shares), memory limit and quota of one cgroup; None: there is none."""

    cpu_shares: int
    memory_bytes: int | None
    quota_millis: int | None = None
    """Of a pod that kubelet takes for best-effort: of others it writes it, by their native amounts."""


def asks_for_mid(pod: Pod) -> bool:
    """Whether a tenant asks for mid resources alone, so that kubelet takes it for best-effort."""
    if pod.qos == "reclaimed_cores" or pod.kube_qos != "BestEffort":
        return False
    is_mid = priority_class(pod.labels, pod.priority) == "koord-mid"
    # Of a best-effort pod no amount is plain.
    return is_mid and any(map(_amounts, (*pod.containers, *pod.init_containers)))


def is_limited_here(pod: Pod) -> bool:
    """Whether a pod's amounts are unknown to kubelet, so that whoever else knows them has to write its limits."""
    return pod.qos == "reclaimed_cores" or asks_for_mid(pod)


def _amounts(container: Container) -> int:
    return container.cpu_request_millis or container.memory_request_bytes


UNSAID_PART, LEAST_UNSAID_BYTES = 8, 256 << 20


def unsaid_memory_bytes(machine_bytes: int) -> int:
    """What a container of a reclaimed pod gets that does not say how much memory it takes: an eighth of the machine's.

    The amount follows from the machine alone: a limit that followed the offer would kill pods that relied on it.
    """
    return max(LEAST_UNSAID_BYTES, machine_bytes // UNSAID_PART)


def limits_of(pod: Pod, layout: Layout, unsaid_bytes: int) -> dict[str, GroupLimits]:
    """What each group of a pod shall have, the pod's own first; a container without an id has no group yet.

    `unsaid_bytes` is the limit of a reclaimed pod's container that has said none; 0: it gets none.
    """
    found = {layout.pod_group(pod): pod_limits(pod, unsaid_bytes)}
    for container in {one.name: one for one in (*pod.init_containers, *pod.containers)}.values():
        group = layout.container_group(pod, container)
        if group is not None:
            shares = shares_of_millis(container.cpu_request_millis)
            memory_bytes = _memory_bytes(pod, container, unsaid_bytes) or None
            found.setdefault(group, GroupLimits(shares, memory_bytes, _quota_millis(pod, [container])))
    return found


def pod_limits(pod: Pod, unsaid_bytes: int) -> GroupLimits:
    """What the pod's own group shall have: its containers' together; no memory limit where one of them has none.

    A reclaimed pod always has one, also where no container of it could be read.
    """
    shares = shares_of_millis(_together(pod, lambda one: one.cpu_request_millis))
    quota = _quota_millis(pod, (*pod.containers, *pod.init_containers))
    limits = [_memory_bytes(pod, container, unsaid_bytes) for container in (*pod.containers, *pod.init_containers)]
    if not limits and pod.qos == "reclaimed_cores":
        return GroupLimits(shares, unsaid_bytes or None, quota)
    # One container without a limit has all of the machine's memory, so the pod has it.
    if not limits or not all(limits):
        return GroupLimits(shares, None, quota)
    together_bytes = _together(pod, lambda one: _memory_bytes(pod, one, unsaid_bytes))
    return GroupLimits(shares, together_bytes + pod.overhead_memory_bytes, quota)


def _memory_bytes(pod: Pod, container: Container, unsaid_bytes: int) -> int:
    """Reclaimed memory is taken back at any time: what such a pod asked for is also the most it gets. 0: no limit."""
    if pod.qos == "reclaimed_cores":
        return container.memory_limit_bytes or container.memory_request_bytes or unsaid_bytes
    return container.memory_limit_bytes


def _quota_millis(pod: Pod, containers: Sequence[Container]) -> int | None:
    """Their CPU limits together; none where one of them has none."""
    if (
        pod.kube_qos != "BestEffort"
        or not is_limited_here(pod)
        or not containers
        or not all(one.cpu_limit_millis for one in containers)
    ):
        return None
    one = len(containers) == 1
    limit = containers[0].cpu_limit_millis if one else _together(pod, lambda each: each.cpu_limit_millis)
    # On a faster CPU the same work takes less of it; the node has sold so much more.
    return math.ceil(limit / pod.cpu_normalization_ratio)


def _together(pod: Pod, amount: Callable[[Container], int]) -> int:
    return together(pod.containers, pod.init_containers, amount)
