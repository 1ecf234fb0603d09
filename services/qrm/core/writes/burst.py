"""CPU burst lets a container overdraw its quota for a moment by what it left unused before.

Policies are those of the annotation (docs/facts/katalyst-cluster.md#qos-annotations): `static` allows the percent
that the annotation says, or all of the quota; `closed` none; `default`, which is also what silence means, what the
node's settings say. `dynamic` counts as `static` here. The kernel takes no more than the quota (100 percent).
"""

from collections.abc import Iterable, Iterator

from services.qrm.core.placement.requests import annotations_of
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import Knob, Write
from shared.core.cgroups.layout import Layout

FULL_PERCENT = 100.0


def burst_percent(pod: Pod, default_percent: float) -> float:
    """How much of its quota a pod's containers may save up; never anything for reclaimed pods."""
    if pod.qos == "reclaimed_cores":
        return 0.0
    if not pod.annotations:
        return default_percent
    annotated = annotations_of(pod)
    policy, percent = annotated.cpu_burst_policy, annotated.cpu_burst_percent
    if policy in ("static", "dynamic"):
        return FULL_PERCENT if percent is None else percent
    return 0.0 if policy == "closed" else default_percent


def burst_writes(pods: Iterable[Pod], layout: Layout, default_percent: float) -> Iterator[Write]:
    """The setting of every container with a quota, where any burst is allowed or the pod says that none is."""
    for pod in pods:
        percent = burst_percent(pod, default_percent)
        # 0 is the kernel's own default: it is written only where the pod itself said so, and a value may have to go.
        if pod.qos == "reclaimed_cores" or (not percent and not pod.annotations):
            continue
        for container in pod.containers:
            group = layout.container_group(pod, container)
            if container.cpu_limit_millis and group is not None:
                yield Write(group, Knob.CPU_BURST, int(container.cpu_limit_millis * percent / FULL_PERCENT))
