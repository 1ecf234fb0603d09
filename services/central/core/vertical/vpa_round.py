"""One round over all vertical autoscalers: which work, what each gives its containers, and which pod is next."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from services.central.core.recommendation.objects.status import APPLIED, PROVIDED, VALIDATED, ConditionDue
from services.central.core.recommendation.objects.workloads import ContainerNeeds, WorkloadPod
from services.central.core.recommendation.vpa_target import (
    EVERY_CONTAINER,
    ContainerFigures,
    concerns,
    pod_target,
)
from services.central.core.vertical.vpa_object import VpaSeen, VpaWanted, created_s

Figures = Mapping[str, ContainerFigures]
NAMED_PODS: Final = 5


@dataclass(frozen=True, slots=True)
class VpaTargetSeen:
    """What is known of an autoscaler's target; None: there is no such Deployment."""

    containers: frozenset[str] | None
    recommended: Figures = field(default_factory=dict)
    pods: Sequence[WorkloadPod] = ()
    also_applied_by: str = ""
    """Another object that resizes the same pods."""


@dataclass(frozen=True, slots=True)
class VpaStep:
    """The conditions of an autoscaler, the figures of each container, and the pod to resize next."""

    conditions: Sequence[ConditionDue]
    given: Figures = field(default_factory=dict)
    pod: WorkloadPod | None = None
    figures: Figures = field(default_factory=dict)
    """Of that pod, all of its containers."""


def rivals(vpas: Iterable[VpaSeen]) -> dict[str, str]:
    """Return autoscalers whose target has an older one, by UID, with its name; the older one continues."""
    first: dict[tuple[str, str], VpaSeen] = {}
    found: dict[str, str] = {}
    for one in sorted(vpas, key=lambda vpa: (vpa.created_s, vpa.namespace, vpa.name)):
        if one.wanted is not None:
            older = first.setdefault((one.namespace, one.wanted.target), one)
            if older is not one:
                found[one.uid] = f"{older.kind.kind} {older.name}"
    return found


def vpa_step(seen: VpaSeen, target: VpaTargetSeen, rival: str = "") -> VpaStep:
    """Return the step of one autoscaler, from everything that is known."""
    wanted = seen.wanted
    if wanted is None:
        return _stopped(seen.reason, seen.problem)
    if rival:
        return _stopped("TargetTaken", f"{rival} is older and has the same target")
    if target.containers is None:
        return _stopped("TargetNotFound", f"there is no Deployment {seen.namespace}/{wanted.target}")
    unknown = sorted(wanted.policies.keys() - target.containers - {EVERY_CONTAINER})
    if unknown:
        return _stopped("ContainerUnknown", f"Deployment {wanted.target} has no container {unknown[0]!r}")
    if target.also_applied_by and wanted.strategy != "Off":
        return _stopped("TargetTaken", f"{target.also_applied_by} applies its figures to the same pods")
    valid = ConditionDue(VALIDATED, True, "Valid")
    if not target.recommended:
        missing = (
            "want a ResourceRecommend with the same target, and what it recommends"
            if seen.own is None
            else "its recommender has said nothing yet"
        )
        return VpaStep([valid, ConditionDue(PROVIDED, False, "NothingRecommended", missing)])
    found = [valid, ConditionDue(PROVIDED, True, "Recommended")]
    given = _given(wanted, target)
    if wanted.strategy == "Off":
        return VpaStep([*found, ConditionDue(APPLIED, False, "Off", "podUpdatingStrategy is Off")], given)
    pod, figures, said = _next(seen, wanted, target)
    return VpaStep([*found, said], given, pod, figures)


def _stopped(reason: str, said: str) -> VpaStep:
    return VpaStep([ConditionDue(VALIDATED, False, reason, said), ConditionDue(PROVIDED, False, "NotValidated")])


def _given(wanted: VpaWanted, target: VpaTargetSeen) -> dict[str, ContainerFigures]:
    """The recommendation within the policies, for containers that have both."""
    found = {}
    for name, figures in target.recommended.items():
        policy = wanted.policies.get(name) or wanted.policies.get(EVERY_CONTAINER)
        if policy is not None and name in (target.containers or ()):
            found[name] = policy.apply(ContainerFigures(), figures)
    return found


def _next(seen: VpaSeen, wanted: VpaWanted, target: VpaTargetSeen) -> tuple[WorkloadPod | None, Figures, ConditionDue]:
    """The oldest pod that changes; none while kubelet has not done with another one."""
    running = sorted((pod for pod in target.pods if pod.running), key=lambda pod: (pod.created, pod.name))
    for pod in running:
        if pod.resize or not _in_force(pod):
            said = f"pod {pod.name}: its resize is not in force yet {pod.resize} {pod.resize_said}".rstrip()
            return None, {}, ConditionDue(APPLIED, False, "Waiting", said)
    held: list[str] = []
    for pod in running:
        if not concerns(wanted.matching, vpa_created_s=seen.created_s, pod_created_s=created_s(pod.created)):
            continue
        found = pod_target(_figures(pod.containers), target.recommended, wanted.policies)
        restarting = _restarting(pod, found.containers)
        if found.hindrance is not None or restarting:
            held.append(f"{pod.name}: {found.hindrance or restarting}")
        elif found.containers:
            return pod, found.containers, ConditionDue(APPLIED, False, "Resizing", f"pod {pod.name} is next")
    if held:
        more = f"; and {len(held) - NAMED_PODS} more" if len(held) > NAMED_PODS else ""
        return None, {}, ConditionDue(APPLIED, False, "SomePodsStay", "; ".join(held[:NAMED_PODS]) + more)
    return None, {}, ConditionDue(APPLIED, True, "AsRecommended", "every pod that is meant has its figures")


def _in_force(pod: WorkloadPod) -> bool:
    """Whether kubelet works with the requests that the pod has; where it does not say, it counts as done."""
    return all(pod.in_force.get(name, one.requests) == one.requests for name, one in pod.containers.items())


def _figures(containers: Mapping[str, ContainerNeeds]) -> dict[str, ContainerFigures]:
    return {name: ContainerFigures(one.requests, one.limits) for name, one in containers.items()}


def _restarting(pod: WorkloadPod, after: Figures) -> str:
    """Why a pod stays that would restart a container: in place means without that."""
    for name, figures in after.items():
        one = pod.containers[name]
        changed = {resource for part, past in ((figures.requests, one.requests), (figures.limits, one.limits))
                   for resource, amount in part.items() if past.get(resource) != amount}  # fmt: skip
        if changed & one.restarts:
            return f"container {name!r} would restart, by its resizePolicy"
    return ""
