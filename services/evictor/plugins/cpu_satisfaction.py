"""Detects reclaimed pods that get a small share of the CPU they request: soft, so that some run elsewhere.

The rule and the order are Koordinator's (docs/facts/koordinator-evict.md#cpu-by-satisfaction), applied to a window and
to the current sample. Off by default, as in Koordinator.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.evictor.core.detectors.cpu.satisfaction import (
    LOWER_MAX_PERCENT,
    UPPER_BOUND_PERCENT,
    USAGE_THRESHOLD_PERCENT,
    BestEffortCpu,
    SatisfactionRule,
    StarvingPod,
    in_order,
    millis_to_free,
)
from services.evictor.core.detectors.reclaimed.overcommit import offers_by_resource
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.pod_figures import cpu_usage_cores
from services.evictor.core.plugin_kit.sample_ring import Rings, mean
from shared.contracts.envelope import Reason
from shared.contracts.pod import RECLAIMED_CPU, Pod
from shared.core.cgroups.layout import RECLAIM
from shared.core.cpus.cpuset import CpuSet
from shared.core.quantities import Percent, Seconds

SCOPE = "cpu.satisfaction.reclaimed"
LIMIT, USED, REQUEST = "limit_millis", "used_millis", "request_millis"
LEAST_SHARE = 3
"""Least filled share of the window, as a divisor, before it is judged."""


class CpuSatisfactionSettings(PluginSettings):
    """Which share of their requests is too little, and how many requests to evict."""

    enabled: bool = False
    cooling_s: Annotated[float, Field(ge=0, le=3600)] = 20.0
    """Time after an eviction in which the plugin evicts no pod, if longer than the evictor's own."""
    lower_percent: Annotated[int, Field(ge=1, le=LOWER_MAX_PERCENT)] = 30
    """Reclaimed pods starve if they can have at most this percent of their requests."""
    upper_percent: Annotated[int, Field(ge=1, lt=UPPER_BOUND_PERCENT)] = 40
    """Pods are evicted until the others can have this percent of their requests; not below `lower_percent`."""
    usage_threshold_percent: Percent = USAGE_THRESHOLD_PERCENT
    """Pods count as starving only while they use this percent of what they can have."""
    limit: Literal["real", "offer"] = "real"
    """What reclaimed pods can have. real: the CPUs of their pool, within its limit. offer: the offer."""
    period_s: Seconds = 5.0
    """Seconds between two samples in the window; while the node rests, at most one per `metrics.rest_period_s`."""
    window_samples: Annotated[int, Field(ge=3, le=1000)] = 12
    """Samples in the window."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.rule.usable:
            raise ValueError(f"upper_percent {self.upper_percent}: want at least lower_percent, which is "
                             f"{self.lower_percent}; raise it, or lower lower_percent")  # fmt: skip
        return self

    @property
    def rule(self) -> SatisfactionRule:
        """Return the rule as the detector takes it."""
        return SatisfactionRule(self.lower_percent, self.upper_percent, self.usage_threshold_percent)


def evaluate(window: Rings, view: View, settings: CpuSatisfactionSettings) -> tuple[Rings, Pressure | Silence]:
    """Judge the window and this sample; both must show starvation."""
    now = _now(view, settings)
    if now is None:
        return Rings(), "unknown"
    figures = {LIMIT: now.limit_millis, USED: now.used_millis, REQUEST: now.request_millis}
    window = window.after(figures, view, period_s=settings.period_s, ring_size=settings.window_samples)
    means = _means(window, settings)
    if means is None:
        return window, "calm"
    freed = millis_to_free(means, now, settings.rule)
    return window, _pressure(now, means, freed, settings) if freed > 0 else "calm"


def _now(view: View, settings: CpuSatisfactionSettings) -> BestEffortCpu | None:
    """Return the current figures; None if the pool, its use, or the offer is unknown."""
    pool = view.allocation.pool(RECLAIM) if view.allocation is not None else None
    reading = view.sample.pool(RECLAIM)
    if pool is None or reading is None or reading.cpu_usage_cores is None:
        return None
    limit = len(CpuSet.parse(pool.cpus)) * 1000
    if reading.cpu_limit_cores is not None:
        limit = min(limit, round(reading.cpu_limit_cores * 1000))
    if settings.limit == "offer":
        # Absent is not zero; an offer of nothing is: it counts as next to nothing, so that it can be starved by.
        offer = offers_by_resource(view.reclaimed or {}).get(RECLAIMED_CPU)
        if offer is None:
            return None
        limit = max(1, offer.amount)
    return BestEffortCpu(limit, round(reading.cpu_usage_cores * 1000), sum(p.cpu_request_millis for p in _asking(view)))


def _asking(view: View) -> list[Pod]:
    """Return the reclaimed pods that request CPU, without pods that are already terminating."""
    mine = [reading.pod for reading in view.pods if reading.pod.qos == "reclaimed_cores"]
    return [pod for pod in mine if pod.cpu_request_millis > 0 and not pod.terminating]


def _means(window: Rings, settings: CpuSatisfactionSettings) -> BestEffortCpu | None:
    if len(window.of(LIMIT)) * LEAST_SHARE < settings.window_samples:
        return None
    return BestEffortCpu(*(round(mean(window.of(name)) or 0.0) for name in (LIMIT, USED, REQUEST)))


def _pressure(now: BestEffortCpu, means: BestEffortCpu, freed: int, settings: CpuSatisfactionSettings) -> Pressure:
    return Pressure(
        hard=False,
        scope=SCOPE,
        observed=now.request_millis,
        threshold=now.request_millis - freed,
        why=Reason(
            rule="reclaimed pods can have too small a part of the CPU that they ask for",
            numbers={
                "limit_millis": now.limit_millis,
                "used_millis": now.used_millis,
                "request_millis": now.request_millis,
                "window_limit_millis": means.limit_millis,
                "window_used_millis": means.used_millis,
                "window_request_millis": means.request_millis,
                "lower_percent": settings.lower_percent,
                "upper_percent": settings.upper_percent,
            },
        ),
    )


def rank(view: View, _pressure: Pressure, _settings: CpuSatisfactionSettings) -> tuple[Candidate, ...]:
    """Return reclaimed pods that request CPU: low priority first, then large use over request."""
    used = {reading.pod.uid: round((cpu_usage_cores(reading) or 0.0) * 1000) for reading in view.pods}
    order = in_order(
        StarvingPod((pod.key, pod.uid), pod.priority, pod.cpu_request_millis, used[pod.uid], pod)
        for pod in _asking(view)
    )
    return tuple(
        Candidate(
            pod.of,
            Reason(
                rule="low priority first, then large use over request",
                numbers={
                    "priority": pod.of.priority,
                    "usage_ratio": round(pod.usage_ratio, 3),
                    "request_millis": pod.request_millis,
                },
            ),
            pod.request_millis,
        )
        for pod in order
    )


PLUGIN = Plugin(
    name="cpu-satisfaction-eviction-plugin",
    settings=CpuSatisfactionSettings,
    start=Rings,
    evaluate=evaluate,
    rank=rank,
)
