"""Quota burst raises the quota of a throttled container above its limit, step by step, and lowers it again.

A step up requires a throttled container, idle CPUs in the share pool and, if the burst has a budget, a remaining
budget. A quota falls if the share pool is overloaded, the budget is spent, figures are too old, or nothing has
throttled the container for a while. It always stays between the limit and a percentage of the limit.

Facts: docs/facts/koordinator-isolation.md#quotas-that-move.
"""

from dataclasses import dataclass
from typing import Literal

from shared.contracts.sample import NodeSample, PodReading
from shared.core.cgroups.knobs import UNLIMITED
from shared.core.cpus.cpuset import CpuSet

FULL_PERCENT = 100
RISE_PERCENT, FALL_PERCENT = 120, 80
"""Factors of one step up and one step down."""
COOLING_PERCENT = 90
"""From this part of the share pool's threshold on no quota rises."""
STEP_S = 1.0
"""Shortest time between two steps."""
STALE_S, STALE_WINDOWS = 10.0, 3
"""Age after which a sample is too old, in seconds and as a multiple of the span that its rates cover."""
SPENDS_PERCENT, SAVES_PERCENT = 100, 60
"""Of its limit: a container spends its budget from the first on, and saves below the second."""
FIRST_PART = 0.25
"""Part of its budget that a container has when it is first seen."""

SharePoolState = Literal["idle", "cooling", "overloaded", "unknown", "stale"]


@dataclass(frozen=True, slots=True)
class QuotaBurstRules:
    """The node's settings about moving quotas; off by default."""

    enabled: bool = False
    by_annotation: bool = False
    """Whether a pod's annotation may enable it if it is off."""
    most_percent: int = 300
    """Most that a quota becomes, in percent of the container's limit."""
    budget_s: int = UNLIMITED
    """How long a container may use the most that it may have; UNLIMITED: without end."""
    share_pool_percent: int = 50
    """Use of the share pool from which on quotas fall."""
    hold_s: float = 60.0
    """How long a quota stays where nothing throttles the container."""

    @property
    def on(self) -> bool:
        """Whether any pod may have it."""
        return self.enabled or self.by_annotation


@dataclass(frozen=True, slots=True)
class BurstableContainer:
    """One container whose quota may move, with what was measured of it; None: that is not known."""

    limit_millis: int
    most_percent: int
    budget_s: int = UNLIMITED
    throttled_ratio: float | None = None
    usage_cores: float | None = None
    group: str = ""

    @property
    def most_millis(self) -> int:
        """The largest quota."""
        return max(self.limit_millis, self.limit_millis * self.most_percent // FULL_PERCENT)

    def within(self, quota_millis: int) -> int:
        """The nearest quota that it may have."""
        return max(self.limit_millis, min(quota_millis, self.most_millis))

    @property
    def budget(self) -> int:
        """Most that it may save up, in percent of its limit times seconds."""
        return 0 if self.budget_s == UNLIMITED else self.budget_s * max(0, self.most_percent - FULL_PERCENT)

    def in_seconds(self, left: float) -> float:
        """For how long a part of the budget lasts at the largest quota."""
        return max(0.0, left) / max(1, self.most_percent - FULL_PERCENT)


@dataclass(frozen=True, slots=True)
class QuotaBoost:
    """One container's quota, and what decides on its next step. Times are monotonic seconds."""

    quota_millis: int
    held_until_s: float
    left: float
    """The remaining budget; negative if it is overdrawn."""
    at_s: float


def next_boost(
    last: QuotaBoost | None, container: BurstableContainer, pool: SharePoolState, hold_s: float, now_s: float
) -> QuotaBoost:
    """Return the state after one step; a new container begins at its limit."""
    last = last or QuotaBoost(container.limit_millis, now_s, container.budget * FIRST_PART, now_s)
    left = _left(last, container, now_s)
    throttled = pool != "stale" and (container.throttled_ratio or 0.0) > 0
    held_until_s = now_s + hold_s if throttled else min(last.held_until_s, now_s + hold_s)
    spent = container.budget_s != UNLIMITED and left <= 0
    quota = container.within(last.quota_millis)
    calm = not throttled and now_s >= held_until_s
    if pool in ("overloaded", "stale") or spent or calm:
        quota = quota * FALL_PERCENT // FULL_PERCENT
    elif throttled and pool == "idle":
        quota = -(-quota * RISE_PERCENT // FULL_PERCENT)
    return QuotaBoost(container.within(quota), held_until_s, left, now_s)


def _left(last: QuotaBoost, container: BurstableContainer, now_s: float) -> float:
    """Return the remaining budget; an unknown use changes nothing."""
    used_percent, change = _used_percent(container), 0.0
    if used_percent is not None:
        # No longer than a sample is believed: what came in between is not known.
        span_s = min(STALE_S, max(0.0, now_s - last.at_s))
        if used_percent >= SPENDS_PERCENT or used_percent < SAVES_PERCENT:
            change = (FULL_PERCENT - used_percent) * span_s
    return max(-container.budget, min(container.budget, last.left + change))


def _used_percent(container: BurstableContainer) -> float | None:
    if container.usage_cores is None:
        return None
    return container.usage_cores * 1000 / container.limit_millis * FULL_PERCENT


def share_pool_state(sample: NodeSample | None, age_s: float | None, threshold_percent: int) -> SharePoolState:
    """How busy the CPUs are that tenants share: all but what dedicated pods asked for, with the system's use.

    Reclaimed pods do not count: they yield.
    """
    if sample is None or age_s is None or age_s > max(STALE_S, STALE_WINDOWS * (sample.window_s or 0.0)):
        return "stale"
    if sample.node_reading.cpu_usage_cores is None:
        return "unknown"
    cpus = float(len(CpuSet.parse(sample.node_reading.online_cpus)))
    used = sample.node_reading.cpu_usage_cores
    for reading in sample.pods:
        if reading.pod.qos == "dedicated_cores":
            cpus -= reading.pod.cpu_request_millis / 1000
        if reading.pod.qos in ("dedicated_cores", "reclaimed_cores"):
            used -= _usage_cores(reading)
    used_percent = used / cpus * FULL_PERCENT if cpus > 0 else FULL_PERCENT
    if used_percent >= threshold_percent:
        return "overloaded"
    return "cooling" if used_percent * FULL_PERCENT >= threshold_percent * COOLING_PERCENT else "idle"


def _usage_cores(reading: PodReading) -> float:
    return sum(one.cpu_usage_cores or 0.0 for one in reading.containers)
