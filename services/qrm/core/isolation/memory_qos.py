"""Memory QoS protects a part of what a pod asked for, and slows a container down before it reaches its limit.

A group's protection counts as far as the groups above it have one: each of these gets the sum of the pods below it.
Facts: docs/facts/koordinator-isolation.md#memory-qos.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from services.qrm.core.isolation.pod_words import MemoryWords, memory_words
from services.qrm.core.isolation.rules import MemoryQos, NodeRules, Values
from shared.contracts.pod import Container, Pod, QosClass
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import Layout, above

PAGE_BYTES = 4096
AUTO: Mapping[QosClass, MemoryQos] = {
    "dedicated_cores": MemoryQos(wmark_min_adj=-25),
    "shared_cores": MemoryQos(wmark_min_adj=-25),
    "reclaimed_cores": MemoryQos(wmark_min_adj=50),
    "system_cores": MemoryQos(wmark_ratio=0),
}
"""Meaning of the policy `auto` of a pod, and the default of a class without settings."""
_NOTHING = MemoryQos(wmark_ratio=0)


@dataclass(frozen=True, slots=True)
class Protection:
    """What one group gets, in bytes; None: it is never throttled."""

    min_bytes: int
    low_bytes: int
    high_bytes: int | None = None


def memory_values(pods: Iterable[Pod], layout: Layout, rules: NodeRules) -> Values:
    """Return the values for pods, their containers and the groups above them; empty if memory QoS is off."""
    values: dict[tuple[str, Knob], int] = {}
    for pod in pods if rules.memory else ():
        qos = of_pod(pod, rules.memory)
        group = layout.pod_group(pod)
        own = protected(pod.memory_request_bytes, qos)
        values |= _settings(group, own, qos)
        for name in above(group):
            for knob, part in ((Knob.MEMORY_MIN, own.min_bytes), (Knob.MEMORY_LOW, own.low_bytes)):
                values[name, knob] = values.get((name, knob), 0) + part
        for container, of_container in _containers(pod, layout):
            values |= _settings(of_container, protection(container, qos, rules.machine_bytes), qos)
    # 0 is the kernel's own default, and a value that was given is given back where it is not wanted any more.
    return {key: value for key, value in values.items() if value or key[1] is Knob.MEMORY_HIGH}


def of_pod(pod: Pod, rules: Mapping[QosClass, MemoryQos]) -> MemoryQos:
    """Return the memory QoS of one pod: its class's, overridden field by field by its annotation.

    The annotation of a reclaimed pod is ignored, because it would protect memory that is lent to it.
    """
    of_class = rules.get(pod.qos, _NOTHING)
    if pod.qos == "reclaimed_cores" or not pod.annotations:
        return of_class
    words = memory_words(pod)
    if words.policy == "none":
        return _NOTHING
    return _over(AUTO[pod.qos] if words.policy == "auto" else of_class, words)


def _over(qos: MemoryQos, words: MemoryWords) -> MemoryQos:
    return replace(qos, **words.fields) if words.fields else qos


def protected(request_bytes: int, qos: MemoryQos) -> Protection:
    """Return which part of a request is never reclaimed, and which is reclaimed last; the kernel rounds both down to
    whole pages."""
    least, low = request_bytes * qos.min_percent // 100, request_bytes * qos.low_percent // 100
    return Protection(least, max(low, least) if low else 0)


def protection(container: Container, qos: MemoryQos, machine_bytes: int, page_bytes: int = PAGE_BYTES) -> Protection:
    """Return the protection, and where the container is throttled: a share of the way from request to limit, in
    whole pages.

    Without a limit the machine's memory takes its place; if that is unknown as well, the container is never throttled.
    """
    request, limit = container.memory_request_bytes, container.memory_limit_bytes or machine_bytes
    own = protected(request, qos)
    if not qos.throttle_percent or not limit:
        return own
    high = request + (limit - request) * qos.throttle_percent // 100
    return replace(own, high_bytes=max(high - high % page_bytes, own.min_bytes))


def _settings(group: str, own: Protection, qos: MemoryQos) -> dict[tuple[str, Knob], int]:
    found = {
        (group, Knob.MEMORY_MIN): own.min_bytes,
        (group, Knob.MEMORY_LOW): own.low_bytes,
        (group, Knob.WMARK_MIN_ADJ): qos.wmark_min_adj,
    }
    if own.high_bytes is not None:
        found[group, Knob.MEMORY_HIGH] = own.high_bytes
    if qos.wmark_ratio:
        found |= {(group, Knob.WMARK_RATIO): qos.wmark_ratio, (group, Knob.WMARK_SCALE): qos.wmark_scale_permill}
    return found


def _containers(pod: Pod, layout: Layout) -> Iterator[tuple[Container, str]]:
    # One that stands for all has the pod's own group.
    for container in () if pod.as_one else pod.containers:
        group = layout.container_group(pod, container)
        if group is not None:
            yield container, group
