"""What nodes are told about a service: its targets, and which of its pods keep what they requested.

Facts: docs/facts/service-profiles.md#what-nodes-do-with-descriptors.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from services.central.core.recommendation.baseline import ServicePod, baseline_of
from services.central.core.recommendation.objects.workloads import WorkloadPod
from services.central.core.service_profiles.descriptor import (
    DescriptorSeen,
    DescriptorSpec,
    NamedIndicator,
)
from shared.contracts.cluster.profiles import (
    MAX_PODS,
    MAX_SERVICES,
    NO_TARGETS,
    TARGET_BOUNDS,
    IndicatorTargets,
    ProfiledService,
)

BASELINE, POOR = "baseline", "poor"


@dataclass(frozen=True, slots=True)
class ToldService:
    """What nodes are told about one service, and which parts of its descriptor they are not told, in words."""

    targets: IndicatorTargets = NO_TARGETS
    kept: Mapping[str, str] = field(default_factory=dict)
    """By UID, why the pod keeps what it asked for."""
    poor: tuple[str, ...] = ()
    """Business indicators by which the service does poorly now, in words."""
    judged: tuple[str, ...] = ()
    """Business indicators that have a bound and are reported."""
    problems: tuple[str, ...] = ()


def told_of(seen: DescriptorSeen, pods: Sequence[WorkloadPod], current: Mapping[str, float]) -> ToldService:
    """Return what nodes are told about a service with these pods; `current`: its reported indicators by name."""
    if seen.spec is None:
        return ToldService()
    targets, problems = targets_of(seen.spec)
    poor = poor_indicators(seen.spec, current)
    service = (ServicePod(pod.created_s, pod.name, pod.active) for pod in pods)
    baseline = set(baseline_of(seen.spec.baseline_percent, service).pods)
    kept = {pod.uid: BASELINE if pod.name in baseline else POOR for pod in pods if poor or pod.name in baseline}
    judged = tuple(one.name for one in bounded_indicators(seen.spec) if one.name in current)
    return ToldService(targets, kept, poor, judged, problems)


def targets_of(spec: DescriptorSpec) -> tuple[IndicatorTargets, tuple[str, ...]]:
    """Return the targets of the system indicators, and the unused ones in words. The lowest of a name counts."""
    found: dict[str, float] = {}
    problems = []
    for one in spec.system_indicator or ():
        value = one.upper_bound
        if value is None:
            continue
        least, most = TARGET_BOUNDS.get(one.name, (0.0, 0.0))
        if one.name not in TARGET_BOUNDS:
            known = ", ".join(TARGET_BOUNDS)
            problems.append(f"systemIndicator {one.name}: no policy of a node has such a target; known are {known}")
        elif not least <= value <= most:
            problems.append(f"systemIndicator {one.name}: UpperBound {value:g}, want {least:g} to {most:g}")
        else:
            found[one.name] = min(value, found.get(one.name, value))
    return IndicatorTargets(**found), tuple(problems)


def poor_indicators(spec: DescriptorSpec, current: Mapping[str, float]) -> tuple[str, ...]:
    """Return business indicators above their upper bound, in words. An unreported one is ignored: absent is not
    zero."""
    return tuple(
        f"{one.name} {current[one.name]:g} above {one.upper_bound:g}"
        for one in bounded_indicators(spec)
        if one.upper_bound is not None and current.get(one.name, -math.inf) > one.upper_bound
    )


def bounded_indicators(spec: DescriptorSpec) -> list[NamedIndicator]:
    """The business indicators that have an upper bound."""
    return [one for one in spec.business_indicator or () if one.upper_bound is not None]


class ServiceHere(NamedTuple):
    """One service on one node; a plain tuple, because each pass builds those of all nodes, and few have changed."""

    namespace: str
    name: str
    targets: IndicatorTargets
    pods: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]
    """UID of each pod that keeps what it asked for, and why."""

    @property
    def message(self) -> ProfiledService:
        """Return the message to the node."""
        by_reason: dict[str, tuple[str, ...]] = {}
        for uid, why in self.kept:
            by_reason[why] = (*by_reason.get(why, ()), uid)
        return ProfiledService(
            namespace=self.namespace, name=self.name, targets=self.targets, pods=self.pods, kept=by_reason
        )


def services_of_nodes(
    services: Iterable[tuple[DescriptorSeen, ToldService, Sequence[WorkloadPod]]],
) -> tuple[dict[str, tuple[ServiceHere, ...]], dict[str, int]]:
    """By node its services with their pods there, and how many pods of it are left out because there are too many."""
    nodes: dict[str, list[ServiceHere]] = {}
    left_out: dict[str, int] = {}
    room: dict[str, int] = {}
    for seen, told, pods in services:
        for node, uids in _by_node(pods).items():
            fits = room.get(node, MAX_PODS) if len(nodes.get(node, ())) < MAX_SERVICES else 0
            here, more = tuple(uids[:fits]), len(uids) - fits
            if more > 0:
                left_out[node] = left_out.get(node, 0) + more
            if here:
                room[node] = fits - len(here)
                kept = tuple((uid, told.kept[uid]) for uid in here if uid in told.kept)
                nodes.setdefault(node, []).append(ServiceHere(seen.namespace, seen.name, told.targets, here, kept))
    return {node: tuple(found) for node, found in nodes.items()}, left_out


def _by_node(pods: Sequence[WorkloadPod]) -> dict[str, list[str]]:
    """Return UIDs by node, in a fixed order, whatever the order of the pods."""
    found: dict[str, list[str]] = {}
    for pod in pods:
        if pod.node and pod.active:
            found.setdefault(pod.node, []).append(pod.uid)
    for uids in found.values():
        uids.sort()
    return found
