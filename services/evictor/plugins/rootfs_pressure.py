"""Detects too little space or too few inodes on the root file system, and evicts the pod that has written most.

Facts: docs/facts/katalyst-eviction.md#root-file-system. Off by default, as in Katalyst, and without thresholds. The
plugin reads `extra`: the node's figures named in `ROOM`, without which nothing is judged, and the containers' figures
in `USED`. No source in `services/metrics/sources` measures the latter: with the built-in sources the plugin sets its
condition, and no pod is a candidate.
"""

from dataclasses import dataclass, field
from typing import Literal, Self

from pydantic import model_validator

from services.evictor.core.detectors.rootfs.pressure import (
    CONDITION,
    MAX_AGE_S,
    SCOPE,
    RootfsLine,
    RootfsRoom,
    RootfsUser,
    check_one,
    heaviest_first,
)
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.pod_figures import extra_sum
from shared.contracts.envelope import Bytes, Count, Reason
from shared.contracts.pod import Pod
from shared.contracts.sample import PodReading
from shared.core.quantities import Ratio

Kind = Literal["bytes", "inodes"]
ROOM: dict[Kind, tuple[str, str]] = {
    "bytes": ("rootfs_available_bytes", "rootfs_capacity_bytes"),
    "inodes": ("rootfs_inodes_free", "rootfs_inodes"),
}
"""Names of the free and the total figure."""
USED: dict[Kind, str] = {"bytes": "rootfs_used_bytes", "inodes": "rootfs_inodes_used"}


class RootfsPressureSettings(PluginSettings):
    """Thresholds as amounts or as shares of the capacity; a threshold that is not set does not exist."""

    enabled: bool = False
    minimum_free_bytes: Bytes | None = None
    """Fewer free bytes are pressure."""
    minimum_free_ratio: Ratio | None = None
    """The same as a share of the capacity, if no amount is set; 0 and 1 mean none."""
    minimum_inodes_free: Count | None = None
    """Fewer free inodes are pressure."""
    minimum_inodes_free_ratio: Ratio | None = None
    """The same as a share of all inodes, if no amount is set; 0 and 1 mean none."""
    pod_minimum_used_bytes: Bytes | None = None
    """If bytes are short, pods that use less are protected."""
    pod_minimum_used_ratio: Ratio | None = None
    """The same as a share of the capacity, if no amount is set; 0 and 1 mean none."""
    pod_minimum_inodes_used: Count | None = None
    """If inodes are short, pods that use fewer are protected."""
    pod_minimum_inodes_used_ratio: Ratio | None = None
    """The same as a share of all inodes, if no amount is set; 0 and 1 mean none."""
    reclaimed_priority_used_bytes: Bytes | None = None
    """If bytes are short, reclaimed pods that use more are evicted first."""
    reclaimed_priority_used_ratio: Ratio | None = None
    """The same as a share of the capacity, if no amount is set; 0 and 1 mean none."""
    reclaimed_priority_inodes_used: Count | None = None
    """If inodes are short, reclaimed pods that use more are evicted first."""
    reclaimed_priority_inodes_used_ratio: Ratio | None = None
    """The same as a share of all inodes, if no amount is set; 0 and 1 mean none."""

    @model_validator(mode="after")
    def _never_both(self) -> Self:
        for kind in ("bytes", "inodes"):
            for stem, amount in _STEMS[kind].items():
                check_one(stem, getattr(self, amount), getattr(self, f"{stem}_ratio"))
        return self

    def lines(self, kind: Kind) -> tuple[RootfsLine, RootfsLine, RootfsLine]:
        """Return the least free amount, the use below which a pod is protected, and the use above which a reclaimed
        pod is first."""
        least, protected, first = (
            RootfsLine(getattr(self, amount), getattr(self, f"{stem}_ratio")) for stem, amount in _STEMS[kind].items()
        )
        return least, protected, first


_STEMS: dict[str, dict[str, str]] = {
    "bytes": {
        "minimum_free": "minimum_free_bytes",
        "pod_minimum_used": "pod_minimum_used_bytes",
        "reclaimed_priority_used": "reclaimed_priority_used_bytes",
    },
    "inodes": {
        "minimum_inodes_free": "minimum_inodes_free",
        "pod_minimum_inodes_used": "pod_minimum_inodes_used",
        "reclaimed_priority_inodes_used": "reclaimed_priority_inodes_used",
    },
}


@dataclass(frozen=True, slots=True)
class FullRootfs(Pressure):
    """The pressure, and what is short: bytes or inodes."""

    of: Kind = field(default="bytes")
    capacity: int | None = None


def evaluate(_memory: None, view: View, settings: RootfsPressureSettings) -> tuple[None, FullRootfs | Silence]:
    """Compare the free amounts with their thresholds. Bytes decide if both are short."""
    rooms = {kind: _room(view, kind) for kind in ROOM}
    if all(room.free is None for room in rooms.values()):
        return None, "unknown"
    for kind, room in rooms.items():
        line = settings.lines(kind)[0]
        if room.below(line):
            return None, _full(kind, room, line)
    return None, "calm"


def _full(kind: Kind, room: RootfsRoom, line: RootfsLine) -> FullRootfs:
    free, threshold = room.free or 0, line.of(room.capacity) or 0.0
    return FullRootfs(
        hard=True,
        scope=SCOPE,
        observed=free,
        threshold=threshold,
        condition=CONDITION,
        below=True,
        why=Reason(
            rule="too little room on the root file system",
            numbers={"of": kind, "free": free, "threshold": threshold, "capacity": room.capacity},
        ),
        of=kind,
        capacity=room.capacity,
    )


def rank(view: View, pressure: FullRootfs, settings: RootfsPressureSettings) -> tuple[Candidate, ...]:
    """Rank reclaimed pods above their threshold first, then all others by use; pods below the minimum are protected."""
    _, protected, first = settings.lines(pressure.of)
    pods = [pod for reading in view.pods if (pod := _user(reading, view, pressure.of)) is not None]
    return tuple(
        Candidate(pod.of, Reason(rule="largest use first", numbers={"used": pod.used}), pod.used)
        for pod in heaviest_first(pods, pressure.capacity, protected, first)
    )


def _room(view: View, kind: Kind) -> RootfsRoom:
    free, capacity = (figure(view, name) for name in ROOM[kind])
    return RootfsRoom(free, capacity)


def figure(view: View, name: str) -> int | None:
    """Return a figure of the node; None if it is missing or stale."""
    measured = view.sample.node_reading.extra.get(name)
    # Somebody may have made room since: an old figure is no reason to evict.
    old = view.sample.figure_ages_s.get(name, 0.0) > MAX_AGE_S
    return None if measured is None or old else int(measured)


def _user(reading: PodReading, view: View, kind: Kind) -> RootfsUser[Pod] | None:
    used, age_s = extra_sum(reading, USED[kind]), view.sample.figure_ages_s.get(USED[kind], 0.0)
    if used is None:
        return None
    pod = reading.pod
    return RootfsUser(pod.namespace, pod.name, pod.qos, int(used), pod, age_s)


PLUGIN = Plugin(
    name="rootfs-pressure-eviction-plugin",
    settings=RootfsPressureSettings,
    start=lambda: None,
    evaluate=evaluate,
    rank=rank,
)
