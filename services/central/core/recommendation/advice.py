"""What to recommend for each container of a workload, or why nothing is recommended yet."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from services.central.core.recommendation.bounds import (
    RequestBounds,
    UsagePercentiles,
    confidence_days,
    request_bounds,
)
from services.central.core.recommendation.oom import OomKill, WorkloadContainer, memory_floor
from services.central.core.recommendation.request import AllowedRange, requested_cpu, requested_memory
from services.central.core.recommendation.usage.samples import UsageSummary
from services.central.core.recommendation.validity import ResourcePolicy

STALE_S = 86_400.0
"""A workload that was not observed for this long counts as a new one."""

NotYet = Literal["", "NoSamples", "LastSampleTooOld", "HistoryTooShort"]


@dataclass(frozen=True, slots=True)
class UsageStanding:
    """Whether enough is known; otherwise a reason and what is missing."""

    reason: NotYet = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class ContainerAdvice:
    """Requests of one container in milli and bytes, by resource."""

    target: Mapping[str, int]
    uncapped: Mapping[str, int]
    """Without buffer, kills and bounds: what was used."""
    bounds: Mapping[str, RequestBounds]
    """Range within which a request need not be changed."""
    confidence_days: float
    from_oom: bool = False


def usage_standing(known: Mapping[str, UsageSummary], min_history_s: float) -> UsageStanding:
    """Whether all containers have been seen lately and for long enough; the first that has not is named."""
    for name, one in sorted(known.items()):
        where = f"container {name!r}"
        if one.age_s is None or one.cpu_cores is None or one.memory_bytes is None:
            return UsageStanding("NoSamples", f"{where}: no complete minute of its use is known yet")
        if one.age_s > STALE_S:
            return UsageStanding(
                "LastSampleTooOld", f"{where}: nothing was heard of it for {one.age_s / 3600:.0f} hours"
            )
        if one.history_s < min_history_s:
            there, wanted = one.history_s / 3600, min_history_s / 3600
            return UsageStanding(
                "HistoryTooShort", f"{where}: {there:.0f} hours of use are known, {wanted:g} are needed"
            )
    return UsageStanding()


@dataclass(frozen=True, slots=True)
class AdvisedWorkload:
    """The workload that is advised: namespace and name of a Deployment."""

    namespace: str
    name: str


def advise(
    workload: AdvisedWorkload,
    policies: Mapping[str, Sequence[ResourcePolicy]],
    known: Mapping[str, UsageSummary],
    kills: Iterable[OomKill],
    now_s: float,
) -> Mapping[str, ContainerAdvice]:
    """Return the requests of each container, without unknown ones."""
    told = list(kills)
    found = {}
    for name, resources in policies.items():
        one = known[name]
        if one.cpu_cores is not None and one.memory_bytes is not None:
            floor = memory_floor(told, WorkloadContainer(workload.namespace, workload.name, name), now_s)
            found[name] = _container(resources, one, one.cpu_cores, one.memory_bytes, floor)
    return found


def _container(
    resources: Sequence[ResourcePolicy],
    known: UsageSummary,
    cores: UsagePercentiles,
    memory: UsagePercentiles,
    floor_bytes: int | None,
) -> ContainerAdvice:
    confidence = confidence_days(known.history_s, known.samples)
    target: dict[str, int] = {}
    uncapped: dict[str, int] = {}
    bounds: dict[str, RequestBounds] = {}
    from_oom = False
    for policy in resources:
        allowed = AllowedRange(
            {} if policy.min_allowed is None else {policy.resource: policy.min_allowed},
            {} if policy.max_allowed is None else {policy.resource: policy.max_allowed},
        )
        if policy.resource == "cpu":
            millis = UsagePercentiles(cores.lower * 1000, cores.target * 1000, cores.upper * 1000)
            target["cpu"] = requested_cpu(cores.target, policy.buffer_percent, allowed)
            uncapped["cpu"], bounds["cpu"] = int(millis.target), request_bounds(millis, confidence)
        else:
            found = requested_memory(memory.target, policy.buffer_percent, floor_bytes, allowed)
            target["memory"], from_oom = found.size_bytes, found.from_oom
            uncapped["memory"], bounds["memory"] = int(memory.target), request_bounds(memory, confidence)
    return ContainerAdvice(target, uncapped, bounds, confidence, from_oom)
