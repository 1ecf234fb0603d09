"""Translates keys of the ConfigMap into settings of Sublet's services with the same effect.

As with Koordinator's feature gates, the settings decide whether an eviction plugin is on: the ConfigMap gives it
values, and an explicit `enable: false` turns it off.

Facts: docs/facts/koordinator-slo-config.md#what-follows-from-it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from services.central.core.slo import isolation
from services.central.core.slo.host_applications import follow_applications
from services.central.core.slo.keys import SHAPES, SloKey, Strategy
from services.central.core.slo.overlay import overlay
from shared.core.cgroups.block_io import UNBOUNDED_IOPS
from shared.core.text.durations import NS_PER_S, duration_ns

Sections = dict[str, Any]

POLICY = "koordinator"
"""The advisor's policy that suppresses as Koordinator does."""
SUPPRESS_SETTINGS = {
    "cpuSuppressThresholdPercent": "suppress_threshold_percent",
    "cpuSuppressMinPercent": "suppress_min_percent",
    "cpuSuppressPolicy": "suppress_policy",
}
SUPPRESSION_STAYS = f"evictions end; suppression stays where settings name advisor.policy {POLICY}: name another there"
TENANT_EVICTIONS = ("cpuEvictThresholdPercent", "cpuEvictLowerPercent", "evictEnabledPriorityThreshold")
"""Of Koordinator's evictions of pods of any class."""
EVICTION_PLUGINS = ("memory_usage", "cpu_satisfaction", "reclaimed_allocatable")
"""Those that do what `enable` of the thresholds switches off there."""
MEMORY_LOWER_DISTANCE = 2
"""Percent below the threshold, where the ConfigMap names no lower one."""
ALLOCATABLE_MAX, ALLOCATABLE_LOWER = 10_000, 100
"""Largest threshold in percent of what is offered, and the lower one, where the ConfigMap names none."""
SATISFACTION_LOWER_MAX, SATISFACTION_UPPER_MAX = 60, 99
EVICT_LIMITS = {"evictByRealLimit": "real", "evictByAllocatable": "offer"}
WINDOW_PERIOD_S, WINDOW_SAMPLES_MIN, WINDOW_SAMPLES_MAX = 5.0, 3, 1000
CPU_POLICIES, MEMORY_POLICIES = ("usage", "maxUsageRequest"), ("usage", "request", "maxUsageRequest")
PERCENT_MAX = 100
METRIC_S_MAX, METRIC_WINDOWS_MAX = 3600, 8
MEMORY_COLLECT_POLICIES = ("usageWithoutPageCache", "usageWithPageCache")
S_PER_MINUTE, DEGRADE_MINUTES_MAX = 60, 60
RECLAIM_PERCENTS = {
    "cpuReclaimThresholdPercent": "cpu_reclaim_percent",
    "memoryReclaimThresholdPercent": "memory_reclaim_percent",
    "batchCPUThresholdPercent": "cpu_at_most_percent",
    "batchMemoryThresholdPercent": "memory_at_most_percent",
}
MID_PERCENTS = {
    "midCPUThresholdPercent": "cpu_at_most_percent",
    "midMemoryThresholdPercent": "memory_at_most_percent",
    "midUnallocatedPercent": "unallocated_percent",
    "midStaticCPUReservedPercent": "static_cpu_percent",
    "midStaticMemoryReservedPercent": "static_memory_percent",
}
APPLICATIONS_NAMED = 8
"""Of applications that are not followed, so many are named."""
QUOTA_SETTINGS: Mapping[str, tuple[str, int, int]] = {
    "cfsQuotaBurstPercent": ("most_percent", 100, 1000),
    "cfsQuotaBurstPeriodSeconds": ("budget_s", -1, 86_400),
    "sharePoolThresholdPercent": ("share_pool_percent", 0, 100),
}
"""Fields of `cpu-burst-config` with ours of `qrm.quota_burst`, and their bounds."""
STATIC_MODE = "static"
"""The only known value of `midReclaimMode`; every other one means the prediction."""


@dataclass(frozen=True, slots=True)
class SloSettings:
    """Settings by section, and values that no setting takes, each with what is wanted."""

    settings: Sections
    unfollowed: tuple[str, ...] = ()


class _Followed:
    """Collects the settings of one key."""

    def __init__(self, key: SloKey, said: Strategy) -> None:
        self.key, self.said, self.whole = key, said, overlay(SHAPES[key].built_in, said)
        self.unfollowed: list[str] = []

    @property
    def switched_off(self) -> bool:
        """Return whether the ConfigMap itself switches it off, not its silence."""
        return self.said.get("enable") is False

    def within(self, field: str, low: int, high: int) -> int | None:
        """Return a number that the setting of the field accepts; None if undeclared or out of bounds."""
        value = self.whole.get(field)
        if value is None or low <= value <= high:
            return value
        self.refuse(field, value, f"want {low} to {high}")
        return None

    def refuse(self, field: str, value: object, wanted: str) -> None:
        """Name a value that is not followed."""
        self.name(field, value, f"{wanted} here; the setting of the nodes holds")

    def name(self, field: str, value: object, said: str) -> None:
        """Say what a value does not do here."""
        self.unfollowed.append(f"{self.key}.{field} = {value}: {said}")


def settings_of_strategy(key: SloKey, said: Strategy) -> SloSettings:
    """Return the settings for what a key says about a node: cluster and node strategy, without built-in values."""
    follow = _FOLLOWING.get(key)
    if follow is None:
        return SloSettings({})
    followed = _Followed(key, said)
    settings = follow(followed)
    return SloSettings(settings, tuple(followed.unfollowed))


def _thresholds(key: _Followed) -> Sections:
    """CPU suppression and the thresholds of evictions."""
    if not key.whole["enable"]:
        if key.switched_off:
            key.name("enable", "false", SUPPRESSION_STAYS)
        # No policy of the advisor is "none": what the settings say holds again.
        off = {name: {"enabled": False} for name in EVICTION_PLUGINS}
        return {"evictor": {"plugins": off}} if key.switched_off else {}
    own = {ours: key.whole[theirs] for theirs, ours in SUPPRESS_SETTINGS.items() if theirs in key.whole}
    values = (("memory_usage", _memory(key)), ("cpu_satisfaction", _satisfaction(key)),
              ("reclaimed_allocatable", _allocatable(key)))  # fmt: skip
    plugins = {name: found for name, found in values if found}
    for field in TENANT_EVICTIONS:
        if (value := key.whole.get(field)) is not None:
            key.name(field, value, "no eviction here takes tenants for it")
    sections: Sections = {"advisor": {"policy": POLICY, "policies": {POLICY: own}}}
    return sections | ({"evictor": {"plugins": plugins}} if plugins else {})


def _memory(key: _Followed) -> Sections:
    threshold = key.within("memoryEvictThresholdPercent", 1, PERCENT_MAX)
    if threshold is None:
        return {}
    lower = key.whole.get("memoryEvictLowerPercent")
    lower = max(0, threshold - MEMORY_LOWER_DISTANCE) if lower is None else lower
    return {"threshold_percent": threshold, "lower_percent": lower}


def _satisfaction(key: _Followed) -> Sections:
    found: Sections = {}
    names = ("cpuEvictBESatisfactionLowerPercent", "cpuEvictBESatisfactionUpperPercent")
    given = [name for name in names if key.whole.get(name) is not None]
    if len(given) == 1:
        other = next(name for name in names if name not in given)
        key.refuse(given[0], key.whole[given[0]], f"want {other} as well")
    elif given:
        lower = key.within(names[0], 1, SATISFACTION_LOWER_MAX)
        upper = key.within(names[1], 1, SATISFACTION_UPPER_MAX)
        if lower is not None and upper is not None:
            found |= {"lower_percent": lower, "upper_percent": upper}
    usage = key.within("cpuEvictBEUsageThresholdPercent", 1, PERCENT_MAX)
    if usage is not None:
        found["usage_threshold_percent"] = usage
    if (policy := key.whole.get("cpuEvictPolicy")) is not None:
        found["limit"] = EVICT_LIMITS[policy]
    longest_s = round(WINDOW_PERIOD_S * WINDOW_SAMPLES_MAX)
    window_s = key.within("cpuEvictTimeWindowSeconds", round(WINDOW_PERIOD_S * WINDOW_SAMPLES_MIN), longest_s)
    if window_s is not None:
        found |= {"period_s": WINDOW_PERIOD_S, "window_samples": round(window_s / WINDOW_PERIOD_S)}
    return found


def _allocatable(key: _Followed) -> Sections:
    """One pair of marks for both resources: that of memory."""
    found: Sections = {}
    names = ("memoryAllocatableEvictThresholdPercent", "memoryAllocatableEvictLowerPercent")
    threshold, lower = key.within(names[0], 1, ALLOCATABLE_MAX), key.whole.get(names[1])
    if threshold is not None and lower is None and threshold <= ALLOCATABLE_LOWER:
        key.refuse(names[0], threshold, f"want {names[1]} as well")
    elif threshold is not None:
        lower = ALLOCATABLE_LOWER if lower is None else lower
        found = {"threshold_percent": threshold, "lower_percent": lower}
    elif lower is not None and names[0] not in key.whole:
        key.refuse(names[1], lower, f"want {names[0]} as well")
    if (priority := key.whole.get("allocatableEvictPriorityThreshold")) is not None:
        found["highest_priority"] = priority
    for name in names:
        cpu = name.replace("memory", "cpu")
        if (value := key.whole.get(cpu)) is not None and value != key.whole.get(name):
            key.name(cpu, value, f"one pair holds for CPU and memory: {names[0]} and {names[1]}")
    return found


def _colocation(key: _Followed) -> Sections:
    """Return how much of a node is offered to batch and mid pods."""
    if not key.whole["enable"]:
        off = {"enabled": False}
        return {"reporter": {"batch": off, "mid": off}} if key.switched_off else {}
    own: Sections = {"enabled": True}
    for theirs, ours in RECLAIM_PERCENTS.items():
        percent = key.within(theirs, 0, PERCENT_MAX)
        if percent is not None:
            own[ours] = percent
    for field, setting, known in (("cpuCalculatePolicy", "cpu_policy", CPU_POLICIES),
                                  ("memoryCalculatePolicy", "memory_policy", MEMORY_POLICIES)):  # fmt: skip
        policy = key.whole[field]
        if policy in known:
            own[setting] = policy
        else:
            key.refuse(field, policy, f"want {' or '.join(known)}")
    mid = _mid(key.whole)
    # Its built-in quarter of an hour is no reason to believe old figures longer than the settings do.
    if "degradeTimeMinutes" in key.said:
        minutes = key.within("degradeTimeMinutes", 1, DEGRADE_MINUTES_MAX)
        degrade = {} if minutes is None else {"degrade_after_s": float(minutes * S_PER_MINUTE)}
        own, mid = own | degrade, mid | degrade
    return {"reporter": {"batch": own, "mid": mid} | _node_metric(key)}


def _mid(said: Strategy) -> Sections:
    """How much mid pods are offered."""
    own: Sections = {"enabled": True} | {ours: said[theirs] for theirs, ours in MID_PERCENTS.items()
                                         if said.get(theirs) is not None}  # fmt: skip
    if (mode := said.get("midReclaimMode")) is not None:
        own["mode"] = STATIC_MODE if mode == STATIC_MODE else "prediction"
    return own


def _node_metric(key: _Followed) -> Sections:
    """Return how the NodeMetric is collected, as far as the ConfigMap itself says; a setting enables it."""
    found: Sections = {}
    for field, setting, low in (("metricAggregateDurationSeconds", "aggregate_s", 60),
                                ("metricReportIntervalSeconds", "report_s", 30)):  # fmt: skip
        seconds = key.within(field, low, METRIC_S_MAX) if field in key.said else None
        if seconds is not None:
            found[setting] = seconds
    policy = key.said.get("metricMemoryCollectPolicy")
    if policy in MEMORY_COLLECT_POLICIES:
        found["memory"] = policy
    elif policy is not None:
        key.refuse("metricMemoryCollectPolicy", policy, f"want {' or '.join(MEMORY_COLLECT_POLICIES)}")
    if "metricAggregatePolicy" in key.said:
        found |= _windows(key)
    return {"node_metric": found} if found else {}


def _windows(key: _Followed) -> Sections:
    durations = (key.whole["metricAggregatePolicy"] or {}).get("durations") or ()
    windows = [duration_ns(text) / NS_PER_S for text in durations]
    if len(windows) > METRIC_WINDOWS_MAX or any(not 60 <= one <= METRIC_S_MAX or one % 1 for one in windows):
        wanted = f"want up to {METRIC_WINDOWS_MAX} durations of 1m to 1h, in whole seconds"
        key.refuse("metricAggregatePolicy.durations", ", ".join(durations)[:200], wanted)
        return {}
    return {"windows_s": [round(one) for one in windows]}


def _burst(key: _Followed) -> Sections:
    found = isolation.burst(key.whole, key.said)
    if isolation.moves_quotas(key.whole):
        values = {ours: key.within(name, low, high) for name, (ours, low, high) in QUOTA_SETTINGS.items()}
        found["qrm"]["quota_burst"] |= {ours: value for ours, value in values.items() if value is not None}
    return found


def _quality(key: _Followed) -> Sections:
    blkio = (key.whole.get("beClass") or {}).get("blkioQOS") or {}
    blocks = blkio.get("blocks") or ()
    left = len(blocks) - len(isolation.followed_disks(blkio).get("blocks", ()))
    if left and blkio.get("enable"):
        wanted = f"followed are up to {isolation.MOST_DISKS} of type device, each named once as /dev/NAME"
        key.name("beClass.blkioQOS.blocks", f"{left} of {len(blocks)}", wanted)
    for block in blocks if blkio.get("enable") else ():
        for field, value in isolation.unbounded_operations(block.get("ioCfg") or {}).items():
            wanted = f"want less than {UNBOUNDED_IOPS}, as kernels count; {block.get('name')} has no such bound"
            key.name(f"beClass.blkioQOS.blocks.{field}", value, wanted)
    return isolation.quality(key.whole, key.said)


def _applications(key: _Followed) -> Sections:
    """The applications of the host that metrics measures, where the ConfigMap itself lists some, or none."""
    if key.said.get("applications") is None:
        return {}
    found = follow_applications(key.said["applications"])
    for name, wanted in islice(found.refused.items(), APPLICATIONS_NAMED):
        key.name(f"applications[{name!r}]", "not measured", f"{wanted}; its use counts as the system's")
    return {"metrics": {"host_applications": found.settings}}


_FOLLOWING: Mapping[SloKey, Callable[[_Followed], Sections]] = {
    "resource-threshold-config": _thresholds,
    "colocation-config": _colocation,
    "cpu-burst-config": _burst,
    "resource-qos-config": _quality,
    "host-application-config": _applications,
}
FOLLOWED_KEYS = tuple(_FOLLOWING)
"""Keys that are followed in part or whole; the others only appear in NodeSLO objects."""
