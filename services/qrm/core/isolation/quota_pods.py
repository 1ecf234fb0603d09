"""Which pods' quotas may move, what their groups must have, and the order of the writes.

A pod's annotation narrows what the node's settings allow and never widens it, because a raised quota lasts for minutes.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.qrm.core.isolation.pod_words import BurstWords, burst_words
from services.qrm.core.isolation.quota_burst import (
    FULL_PERCENT,
    STEP_S,
    BurstableContainer,
    QuotaBoost,
    QuotaBurstRules,
    SharePoolState,
    next_boost,
    share_pool_state,
)
from services.qrm.core.placement.requests import annotations_of
from shared.contracts.pod import Pod
from shared.contracts.sample import ContainerReading, NodeSample
from shared.core.cgroups.knobs import UNLIMITED, Knob, Write
from shared.core.cgroups.layout import Layout

ROUNDING_MILLIS = 10
"""By so much a runtime that goes by systemd rounds a quota up."""
_ON = ("auto", "cfsQuotaBurstOnly")
ContainerKey = tuple[str, str]
"""UID of the pod and name of the container: a restarted container keeps its budget."""


def has_kubelets_quota(pod: Pod) -> bool:
    """Return whether a pod's quotas follow its limits, and it shares CPUs with others.

    This excludes pods with CPUs of their own, and pods whose amounts kubelet does not know: Sublet itself limits those.
    """
    return pod.qos in ("shared_cores", "system_cores") and pod.kube_qos != "BestEffort" and not pod.as_one


def may_burst(pod: Pod, rules: QuotaBurstRules) -> bool:
    """Whether the quotas of a pod may move."""
    if not rules.on or not has_kubelets_quota(pod):
        return False
    if not pod.annotations:
        return rules.enabled
    policy = burst_words(pod).policy
    wanted = rules.enabled if policy is None else policy in _ON
    return wanted and annotations_of(pod).cpu_burst_policy != "closed"


@dataclass(frozen=True, slots=True)
class BurstInput:
    """The input of one step: the newest sample, if any, and its age."""

    sample: NodeSample | None
    age_s: float | None
    now_s: float


@dataclass(slots=True)
class QuotaBursts:
    """The quotas that move, from step to step. A new life begins at the limits."""

    pool: SharePoolState = "unknown"
    """The share pool at the last step."""
    _boosts: dict[ContainerKey, QuotaBoost] = field(default_factory=dict)
    """Of each container whose quota may move."""
    _found: dict[ContainerKey, BurstableContainer] = field(default_factory=dict)
    _stepped_s: float = float("-inf")
    _seen: str = ""

    def step(self, pods: Sequence[Pod], seen: BurstInput, rules: QuotaBurstRules, layout: Layout) -> None:
        """Take one step of all quotas, if the last one is long enough ago and there is a new sample, or a stale one."""
        found = _containers(pods, seen.sample, rules, layout)
        # At once: a pod that has ended, or must not have it any more, waits for no step.
        boosts = {key: boost for key, boost in self._boosts.items() if key in found}
        pool = share_pool_state(seen.sample, seen.age_s, rules.share_pool_percent)
        news = "" if seen.sample is None else f"{seen.sample.boot_id}/{seen.sample.seq}"
        if seen.now_s >= self._stepped_s + STEP_S and (pool == "stale" or news != self._seen):
            self._stepped_s, self._seen, self.pool = seen.now_s, news, pool
            boosts = {
                key: next_boost(boosts.get(key), one, pool, rules.hold_s, seen.now_s) for key, one in found.items()
            }
        self._boosts, self._found = boosts, found

    def end(self) -> None:
        """Forget every quota: all go back to the limits."""
        self._boosts, self._found = {}, {}

    def raised(self) -> dict[str, int]:
        """The quotas above their limits, by group, in milli-cores."""
        # Bounds that have changed since the last step hold at once.
        known = ((self._found[key], boost.quota_millis) for key, boost in self._boosts.items())
        return {one.group: one.within(quota) for one, quota in known if one.within(quota) > one.limit_millis}

    def told(self, now_s: float) -> dict[str, Any]:
        """Return each quota, its possible range, and what decides its next step."""
        rows = [
            {
                "uid": uid,
                "container": name,
                "limit_millis": one.limit_millis,
                "quota_millis": one.within(boost.quota_millis),
                "most_millis": one.most_millis,
                "throttled_ratio": one.throttled_ratio,
                "held_s": max(0.0, boost.held_until_s - now_s),
                "budget_left_s": None if one.budget_s == UNLIMITED else one.in_seconds(boost.left),
            }
            for (uid, name), boost in self._boosts.items()
            for one in (self._found[uid, name],)
        ]
        return {"share_pool": self.pool, "containers": rows}


def _containers(
    pods: Sequence[Pod], sample: NodeSample | None, rules: QuotaBurstRules, layout: Layout
) -> dict[ContainerKey, BurstableContainer]:
    bursting = [pod for pod in pods if may_burst(pod, rules)]
    if not bursting:
        return {}
    readings = _readings(sample)
    found: dict[ContainerKey, BurstableContainer] = {}
    for pod in bursting:
        most_percent, budget_s = _bounds(burst_words(pod), rules)
        for container in pod.containers:
            group = layout.container_group(pod, container)
            if group is not None and container.cpu_limit_millis:
                reading = readings.get((pod.uid, container.name), ContainerReading(name=container.name))
                found[pod.uid, container.name] = BurstableContainer(
                    container.cpu_limit_millis, most_percent, budget_s, reading.throttled_ratio,
                    reading.cpu_usage_cores, group,
                )  # fmt: skip
    return found


def _readings(sample: NodeSample | None) -> dict[ContainerKey, ContainerReading]:
    if sample is None:
        return {}
    return {(one.pod.uid, container.name): container for one in sample.pods for container in one.containers}


def _bounds(words: BurstWords, rules: QuotaBurstRules) -> tuple[int, int]:
    """Return the largest percentage and the budget of a pod: the smaller of its own and the node's."""
    most_percent = rules.most_percent if words.quota_percent is None else min(rules.most_percent, words.quota_percent)
    budgets = [budget for budget in (rules.budget_s, words.budget_s) if budget is not None and budget != UNLIMITED]
    return max(FULL_PERCENT, most_percent), min(budgets, default=UNLIMITED)


@dataclass(frozen=True, slots=True)
class PodQuotas:
    """The quotas of one pod's groups, in milli-cores."""

    group: str
    limits: Mapping[str, int]
    """Limits of each container's group, as the pod declares them."""
    extra: Mapping[str, int]
    """What containers' groups must have above their limits."""


def quotas_of(pod: Pod, raised: Mapping[str, int], layout: Layout) -> PodQuotas:
    """Return what the groups of a pod must have with these raised quotas."""
    groups = ((layout.container_group(pod, one), one.cpu_limit_millis) for one in pod.containers)
    limits = {group: limit for group, limit in groups if group is not None and limit}
    extra = {group: raised[group] - limit for group, limit in limits.items() if group in raised}
    return PodQuotas(layout.pod_group(pod), limits, extra)


def kubelets_quotas(quotas: PodQuotas, found: Mapping[str, int], on_record: Container[str]) -> dict[str, int]:
    """Return what kubelet gave to a pod's groups, as far as it is known from the values and the record.

    A container above its limit without a record was raised by an earlier run, and so was its pod.
    """
    above = {
        group: found[group] - limit
        for group, limit in quotas.limits.items()
        if group not in on_record and found.get(group, UNLIMITED) > limit + ROUNDING_MILLIS
    }
    given = {**found, **{group: quotas.limits[group] for group in above}}
    if above and quotas.group not in on_record and found.get(quotas.group, UNLIMITED) != UNLIMITED:
        # Never below a container, which v1 would refuse.
        given[quotas.group] = max(found[quotas.group] - sum(above.values()), *quotas.limits.values())
    return given


def quota_writes(quotas: PodQuotas, kubelets: Mapping[str, int], now: Mapping[str, int]) -> list[Write]:
    """Return the writes that bring a pod's groups from their current quotas to the wanted ones.

    Kubelet's values are the minimum: a group without a quota gets none, and a container below its limit is about to get
    more from kubelet. The pod gets the sum of its containers. A rise goes from the pod down, a fall from the containers
    up, because v1 refuses a container more than its pod has.
    """
    goal = {
        group: kubelets[group] + quotas.extra.get(group, 0)
        for group, limit in quotas.limits.items()
        if group in now and kubelets.get(group, UNLIMITED) >= limit
    }
    of_pod = kubelets.get(quotas.group, UNLIMITED)
    if of_pod != UNLIMITED:
        of_pod += sum(quotas.extra.get(group, 0) for group in goal)
    above = [(quotas.group, of_pod)] if now.get(quotas.group, of_pod) != of_pod else []
    falls = [(group, millis) for group, millis in sorted(goal.items()) if millis < now[group]]
    rises = [(group, millis) for group, millis in sorted(goal.items()) if millis > now[group]]
    pod_rises = above and of_pod > now[quotas.group]
    order = [*above, *falls, *rises] if pod_rises else [*falls, *above, *rises]
    return [Write(group, Knob.CPU_QUOTA, millis) for group, millis in order]
