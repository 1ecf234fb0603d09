"""Shorten a sample until it is no longer than its readers read. Pure.

The pod that takes the most room loses detail first, one step at a time; its name, its class and its requests stay:

1. its containers become two, those that ask for memory and those that do not, each with its sums;
2. they become one, with what a pod's CPU and memory are judged by; labels go but those that name a class;
3. no figures, and of the annotations only those that say who made the pod.

Where that is not enough either, pods are left out, those without figures first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shared.contracts.pod import Container
from shared.contracts.sample import ContainerReading, NodeSample, PodReading
from shared.core.cgroups.kubelet_layout import CONFIG_PREFIX
from shared.core.pods.metadata import LABELS_READ

SUMS = (
    "cpu_usage_cores", "cpu_sys_cores", "load1", "load5", "runnable_tasks", "sched_wait_tasks", "throttled_cores",
    "memory_usage_bytes", "memory_rss_bytes", "memory_cache_bytes", "memory_working_set_bytes", "memory_shmem_bytes",
    "disk_read_bytes_per_s", "disk_write_bytes_per_s",
)  # fmt: skip
"""What may be added up over containers."""
FEWEST = ("cpu_usage_cores", "memory_usage_bytes", "memory_working_set_bytes", "memory_rss_bytes")

Shorter = Callable[[PodReading], PodReading]


@dataclass(frozen=True, slots=True)
class FittedSample:
    """The sample as it can be sent, encoded; how many pods lost detail, and how many are not in it at all."""

    sample: NodeSample
    payload: bytes
    shortened: int = 0
    left_out: int = 0


def fitted(sample: NodeSample, most_bytes: int) -> FittedSample:
    """The sample, as whole as it can be in so many bytes."""
    payload = sample.encode()
    if len(payload) <= most_bytes:
        return FittedSample(sample, payload)
    # Size of the message without any pod, with the largest number of left-out ones that it may have to report.
    room = most_bytes - len(sample.model_copy(update={"pods": (), "pods_left_out": len(sample.pods)}).encode())
    pods = {reading.pod.uid: reading for reading in sample.pods}
    sizes = {uid: _size(reading) for uid, reading in pods.items()}
    total, shortened = sum(sizes.values()), set[str]()
    # All pods through one step before any through the next, so no pod loses everything while another has all its
    # detail.
    for shorter in STEPS:
        for uid in sorted(sizes, key=lambda uid: (-sizes[uid], pods[uid].pod.key, uid)):
            if total <= room:
                break
            pods[uid] = shorter(pods[uid])
            total -= sizes[uid]
            sizes[uid] = _size(pods[uid])
            total += sizes[uid]
            shortened.add(uid)
    kept = _kept(pods, sizes, room)
    listed = tuple(pods[reading.pod.uid] for reading in sample.pods if reading.pod.uid in kept)
    left_out = len(sample.pods) - len(listed)
    short = sample.model_copy(update={"pods": listed, "pods_left_out": left_out})
    return FittedSample(short, short.encode(), len(shortened & kept), left_out)


def _kept(pods: dict[str, PodReading], sizes: dict[str, int], room: int) -> set[str]:
    """The pods that have room: those with figures first, then by name."""
    kept: set[str] = set()
    for uid in sorted(pods, key=lambda uid: (not any(map(_measured, pods[uid].containers)), pods[uid].pod.key, uid)):
        if sizes[uid] > room:
            break
        kept.add(uid)
        room -= sizes[uid]
    return kept


def _measured(one: ContainerReading) -> bool:
    return one.cpu_usage_cores is not None or one.memory_usage_bytes is not None


def _size(reading: PodReading) -> int:
    # One more for the comma between two pods.
    return len(reading.__pydantic_serializer__.to_json(reading, exclude_none=True)) + 1


def _with_sums(reading: PodReading) -> PodReading:
    asking = [c.name for c in reading.pod.containers if c.memory_request_bytes]
    others = [c.name for c in reading.pod.containers if not c.memory_request_bytes]
    return _as(reading, [group for group in (asking, others) if group], SUMS, {"init_containers": ()})


def _with_fewest(reading: PodReading) -> PodReading:
    labels = {key: value for key, value in reading.pod.labels.items() if key in LABELS_READ}
    names = [c.name for c in reading.pod.containers]
    return _as(reading, [names] if names else [], FEWEST, {"labels": labels, "unread": (), "init_containers": ()})


def _bare(reading: PodReading) -> PodReading:
    made = {key: value for key, value in reading.pod.annotations.items() if key.startswith(CONFIG_PREFIX)}
    # A value that is compared with an annotation must not look removed.
    left_out = True if len(made) < len(reading.pod.annotations) else None
    return PodReading(pod=reading.pod.model_copy(update={"annotations": made}), annotations_left_out=left_out)


STEPS: tuple[Shorter, ...] = (_with_sums, _with_fewest, _bare)


def _as(
    reading: PodReading, groups: Sequence[Sequence[str]], sums: Sequence[str], update: dict[str, Any]
) -> PodReading:
    asked = {c.name: c for c in reading.pod.containers}
    measured = {c.name: c for c in reading.containers}
    containers = tuple(_asking([asked[name] for name in group]) for group in groups)
    figures = tuple(_added(group[0], [measured.get(name) for name in group], sums) for group in groups)
    return PodReading(pod=reading.pod.model_copy(update={"containers": containers, **update}), containers=figures)


def _asking(group: Sequence[Container]) -> Container:
    """One for a group: requests together, limits where each has one."""
    cpu_limits, memory_limits = [c.cpu_limit_millis for c in group], [c.memory_limit_bytes for c in group]
    return Container(
        name=group[0].name,
        cpu_request_millis=sum(c.cpu_request_millis for c in group),
        # 0 means "no limit": one container without a limit leaves the group without one.
        cpu_limit_millis=sum(cpu_limits) if all(cpu_limits) else 0,
        memory_request_bytes=sum(c.memory_request_bytes for c in group),
        memory_limit_bytes=sum(memory_limits) if all(memory_limits) else 0,
    )


def _added(name: str, group: Sequence[ContainerReading | None], sums: Sequence[str]) -> ContainerReading:
    """Return the sums of a group, without figures that one of its members lacks."""
    figures: dict[str, Any] = {}
    for figure in sums:
        values = [None if one is None else getattr(one, figure) for one in group]
        known = [value for value in values if value is not None]
        # A sum without one of its parts would be too small, and look like a figure (docs/facts/safety-
        # rules.md#rule-1-absent-is-not-zero).
        if len(known) == len(values):
            figures[figure] = sum(known)
    return ContainerReading(name=name, **figures)
