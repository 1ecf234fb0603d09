"""CPU burst lets a container overdraw its quota for a moment by what it left unused before.

A pod can set it in either dialect. Katalyst's annotation (docs/facts/katalyst-cluster.md#qos-annotations): `static`
allows the given percentage, or the whole quota; `closed` none; `default`, like no annotation, follows the node's
settings; `dynamic` counts as `static` here. Koordinator's (docs/facts/koordinator-isolation.md#cpu-burst):
`cpuBurstOnly` and `auto` allow it, `none` and `cfsQuotaBurstOnly` do not. The kernel accepts at most the quota.
"""

from collections.abc import Iterable

from services.qrm.core.isolation.pod_words import burst_words
from services.qrm.core.isolation.rules import Values
from services.qrm.core.placement.requests import annotations_of
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import PERIOD_US, Knob
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
    return 0.0 if policy == "closed" else _koordinator_percent(pod, default_percent)


def _koordinator_percent(pod: Pod, default_percent: float) -> float:
    words = burst_words(pod)
    if words.policy in ("none", "cfsQuotaBurstOnly"):
        return 0.0
    # A percent alone changes how much, not whether.
    if words.policy is None and not default_percent:
        return 0.0
    return min(FULL_PERCENT, words.percent or default_percent or FULL_PERCENT)


def burst_values(pods: Iterable[Pod], layout: Layout, default_percent: float) -> Values:
    """Return the burst of every container with a limit, and of its pod, if a burst is allowed or the pod forbids it.

    If all containers have limits, the pod's group has a quota too, which would throttle them without a burst of its
    own.
    """
    values: dict[tuple[str, Knob], int] = {}
    for pod in pods:
        percent = burst_percent(pod, default_percent)
        # 0 is the kernel's own default: it is written only where the pod itself said so, and a value may have to go.
        if pod.qos == "reclaimed_cores" or (not percent and not pod.annotations):
            continue
        millis = {one.name: int(one.cpu_limit_millis * percent / FULL_PERCENT) for one in pod.containers}
        if pod.containers and all(one.cpu_limit_millis for one in pod.containers):
            values[layout.pod_group(pod), Knob.CPU_BURST] = sum(millis.values())
        for container in pod.containers:
            group = layout.container_group(pod, container)
            if container.cpu_limit_millis and group is not None:
                values[group, Knob.CPU_BURST] = millis[container.name]
    return values


def within_quota(burst_millis: int, quota_us: int | None) -> int:
    """Return as much of a burst as the kernel accepts: none without a quota, and never more than the quota.

    The kernel compares the microseconds of both, whatever the period; a burst is written for the usual period.
    """
    return 0 if quota_us is None else max(0, min(burst_millis, quota_us * 1000 // PERIOD_US))
