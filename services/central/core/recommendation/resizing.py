"""Which pod of a workload is resized next: one at a time, and only one whose requests are out of bounds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from services.central.core.recommendation.bounds import RequestBounds
from services.central.core.recommendation.objects.workloads import ContainerNeeds, WorkloadPod
from services.central.core.recommendation.vpa_target import (
    EVERY_CONTAINER,
    Amounts,
    ContainerFigures,
    ResizePolicy,
    pod_target,
)

REQUESTS_ONLY = {EVERY_CONTAINER: ResizePolicy("RequestsOnly")}


@dataclass(frozen=True, slots=True)
class WantedRequest:
    """The recommended request of a container, and the range within which it may stay unchanged."""

    target: Mapping[str, int]
    bounds: Mapping[str, RequestBounds]

    def out_of_bounds(self, asked: Amounts) -> dict[str, int]:
        """Return the targets of resources whose request is too low or too high.

        A target may be outside of its own range, because of its buffer or the owner's bounds. The range is then
        extended to it; otherwise a pod with exactly the recommended request would be out of range.
        """
        return {
            resource: target
            for resource, target in self.target.items()
            if (of := self.bounds.get(resource)) is not None and not _within(of, target, asked.get(resource))
        }


def _within(of: RequestBounds, target: int, asked: int | None) -> bool:
    if asked is None:
        return False
    return min(of.lower, target) <= asked and (of.upper is None or asked <= max(of.upper, target))


@dataclass(frozen=True, slots=True)
class Resize:
    """New requests for one pod, by container."""

    pod: WorkloadPod
    requests: Mapping[str, Amounts]


@dataclass(frozen=True, slots=True)
class ResizePlan:
    """The next resize, or what is waited for; and pods that stay as they are although they are out of bounds."""

    resize: Resize | None = None
    waits_for: str = ""
    held: Mapping[str, str] = field(default_factory=dict)
    """Why, by pod."""


def next_resize(pods: Iterable[WorkloadPod], wanted: Mapping[str, WantedRequest]) -> ResizePlan:
    """One pod of a workload, the oldest first; none while kubelet has not done with another one."""
    running = sorted((pod for pod in pods if pod.running), key=lambda pod: (pod.created, pod.name))
    for pod in running:
        if pod.resize:
            said = f": {pod.resize_said}" if pod.resize_said else ""
            return ResizePlan(waits_for=f"pod {pod.name}: its resize is {pod.resize}{said}")
    held: dict[str, str] = {}
    for pod in running:
        found = _resize(pod, wanted)
        if isinstance(found, Resize):
            return ResizePlan(found, held=held)
        if found:
            held[pod.name] = found
    return ResizePlan(held=held)


def _resize(pod: WorkloadPod, wanted: Mapping[str, WantedRequest]) -> Resize | str:
    """Return the resize of a pod, why it stays unchanged, or "" if it is fine."""
    recommended = {
        name: ContainerFigures(changes)
        for name, one in wanted.items()
        if (asked := pod.containers.get(name)) is not None and (changes := one.out_of_bounds(asked.requests))
    }
    for name, figures in recommended.items():
        if restarting := pod.containers[name].restarts & figures.requests.keys():
            return f"container {name!r} would restart: its resizePolicy for {', '.join(sorted(restarting))}"
    found = pod_target({name: _figures(asked) for name, asked in pod.containers.items()}, recommended, REQUESTS_ONLY)
    if found.hindrance is not None:
        return found.hindrance
    changed = {name: found.containers[name].requests for name in recommended if name in found.containers}
    return Resize(pod, changed) if changed else ""


def is_in_force(resize: Resize, now: WorkloadPod) -> bool:
    """Return whether kubelet reports that a requested resize is done."""
    return not now.resize and all(
        now.containers[name].requests == requests and now.in_force.get(name, requests) == requests
        for name, requests in resize.requests.items()
        if name in now.containers
    )


def _figures(asked: ContainerNeeds) -> ContainerFigures:
    return ContainerFigures(asked.requests, asked.limits)
