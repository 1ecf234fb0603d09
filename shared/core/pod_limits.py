"""What a pod's cgroups shall have for what the pod asks for: weight and memory limit, pod and containers.

The formulas are kubelet's, of native amounts (`ResourceConfigForPod`); here they hold for reclaimed amounts too, which
kubelet does not know as such (notes/koordinator.md section A4). There is no CPU quota for those: reclaimed CPU that
nobody else wants is theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass

from shared.contracts.pod import Container, Pod
from shared.core.knobs import shares_of_millis
from shared.core.layout import Layout


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Weight (in CPU shares) and memory limit of one cgroup; a limit of None: there is none."""

    cpu_shares: int
    memory_bytes: int | None


def limits_of(pod: Pod, layout: Layout) -> dict[str, GroupLimits]:
    """What each group of a pod shall have, the pod's own first; a container without an id has no group yet."""
    found = {layout.pod_group(pod): pod_limits(pod)}
    for container in {one.name: one for one in (*pod.init_containers, *pod.containers)}.values():
        group = layout.container_group(pod, container)
        if group is not None:
            shares = shares_of_millis(container.cpu_request_millis)
            found[group] = GroupLimits(shares, _memory_bytes(pod, container) or None)
    return found


def pod_limits(pod: Pod) -> GroupLimits:
    """What the pod's own group shall have: its containers' together; no memory limit where one of them has none."""
    shares = shares_of_millis(_together(pod, lambda one: one.cpu_request_millis))
    limits = [_memory_bytes(pod, container) for container in (*pod.containers, *pod.init_containers)]
    if not limits or not all(limits):
        return GroupLimits(shares, None)
    return GroupLimits(shares, _together(pod, lambda one: _memory_bytes(pod, one)) + pod.overhead_memory_bytes)


def _memory_bytes(pod: Pod, container: Container) -> int:
    """Reclaimed memory is taken back at any time: what such a pod asked for is also the most it gets. 0: not said."""
    if pod.qos == "reclaimed_cores":
        return container.memory_limit_bytes or container.memory_request_bytes
    return container.memory_limit_bytes


def _together(pod: Pod, amount: Callable[[Container], int]) -> int:
    """The most that is there at a time: all containers, or one init container and the sidecars started before it."""
    staying = {container.name for container in pod.containers}
    beside = largest = 0
    for container in pod.init_containers:
        if container.name in staying:
            beside += amount(container)
        else:
            largest = max(largest, beside + amount(container))
    return max(largest, sum(map(amount, pod.containers)))
