"""Too little room, or too few inodes, on the root file system: who has written most goes.

The rule is `rootfs_pressure` (docs/facts/katalyst-eviction.md#root-file-system). Off by default, as in Katalyst, and
without thresholds. Figures are read from `extra`: of the node those named in `ROOM`, without which nothing is judged,
of containers those in `USED`. The latter nobody can tell cheaply on a host, where containers have no layer of their
own: there the condition is set, and no pod goes on a guess.
"""

from dataclasses import dataclass, field
from typing import Literal, Self

from pydantic import model_validator

from services.evictor.core.detectors.rootfs.pressure import (
    CONDITION,
    MAX_AGE_S,
    SCOPE,
    Line,
    Room,
    RootfsPod,
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
"""Free, and in all."""
USED: dict[Kind, str] = {"bytes": "rootfs_used_bytes", "inodes": "rootfs_inodes_used"}


class Settings(PluginSettings):
    """Lines as amounts or as ratios of the capacity; a line that is not set is none."""

    enabled: bool = False
    minimum_free_bytes: Bytes | None = None
    """Fewer free bytes are pressure."""
    minimum_free_ratio: Ratio | None = None
    """The same as a part of the capacity, where no amount is given; 0 and 1 mean none."""
    minimum_inodes_free: Count | None = None
    """Fewer free inodes are pressure."""
    minimum_inodes_free_ratio: Ratio | None = None
    """The same as a part of all inodes, where no amount is given; 0 and 1 mean none."""
    pod_minimum_used_bytes: Bytes | None = None
    """Where bytes are short, pods that use less are left alone."""
    pod_minimum_used_ratio: Ratio | None = None
    """The same as a part of the capacity, where no amount is given; 0 and 1 mean none."""
    pod_minimum_inodes_used: Count | None = None
    """Where inodes are short, pods that use fewer are left alone."""
    pod_minimum_inodes_used_ratio: Ratio | None = None
    """The same as a part of all inodes, where no amount is given; 0 and 1 mean none."""
    reclaimed_priority_used_bytes: Bytes | None = None
    """Where bytes are short, reclaimed pods that use more go first."""
    reclaimed_priority_used_ratio: Ratio | None = None
    """The same as a part of the capacity, where no amount is given; 0 and 1 mean none."""
    reclaimed_priority_inodes_used: Count | None = None
    """Where inodes are short, reclaimed pods that use more go first."""
    reclaimed_priority_inodes_used_ratio: Ratio | None = None
    """The same as a part of all inodes, where no amount is given; 0 and 1 mean none."""

    @model_validator(mode="after")
    def _never_both(self) -> Self:
        for kind in ("bytes", "inodes"):
            for stem, amount in _STEMS[kind].items():
                check_one(stem, getattr(self, amount), getattr(self, f"{stem}_ratio"))
        return self

    def lines(self, kind: Kind) -> tuple[Line, Line, Line]:
        """Least room, use below which a pod is protected, use above which a reclaimed pod goes first."""
        least, protected, first = (
            Line(getattr(self, amount), getattr(self, f"{stem}_ratio")) for stem, amount in _STEMS[kind].items()
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
class Full(Pressure):
    """The pressure, and of what there is too little."""

    of: Kind = field(default="bytes")
    capacity: int | None = None


class _Writing(RootfsPod):
    pod: Pod


def evaluate(_memory: None, view: View, settings: Settings) -> tuple[None, Full | Silence]:
    """Compare the room that is left with the least there should be. Bytes decide when both are short."""
    rooms = {kind: _room(view, kind) for kind in ROOM}
    if all(room.free is None for room in rooms.values()):
        return None, "unknown"
    for kind, room in rooms.items():
        line = settings.lines(kind)[0]
        if room.below(line):
            return None, _full(kind, room, line)
    return None, "calm"


def _full(kind: Kind, room: Room, line: Line) -> Full:
    free, threshold = room.free or 0, line.of(room.capacity) or 0.0
    return Full(
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


def rank(view: View, pressure: Full, settings: Settings) -> tuple[Candidate, ...]:
    """Reclaimed pods above their line first, then all others by use; those below the pods' minimum are protected."""
    _, protected, first = settings.lines(pressure.of)
    pods = [pod for reading in view.pods if (pod := _writing(reading, view, pressure.of)) is not None]
    return tuple(
        Candidate(pod.pod, Reason(rule="largest use first", numbers={"used": used}), used)
        for pod in heaviest_first(pods, pressure.of, pressure.capacity, protected, first)
        for used in (pod.used(pressure.of),)
    )


def _room(view: View, kind: Kind) -> Room:
    free, capacity = (figure(view, name) for name in ROOM[kind])
    return Room(free, capacity)


def figure(view: View, name: str) -> int | None:
    """A figure of the node; None where it is not there or too old."""
    said = view.sample.node_reading.extra.get(name)
    old = view.sample.figure_ages_s.get(name, 0.0) > MAX_AGE_S
    return None if said is None or old else int(said)


def _writing(reading: PodReading, view: View, kind: Kind) -> _Writing | None:
    used = extra_sum(reading, USED[kind])
    if used is None:
        return None
    return _Writing(
        name=reading.pod.name,
        namespace=reading.pod.namespace,
        qos=reading.pod.qos,
        used_bytes=int(used) if kind == "bytes" else 0,
        inodes_used=int(used) if kind == "inodes" else 0,
        age_s=view.sample.figure_ages_s.get(USED[kind], 0.0),
        pod=reading.pod,
    )


PLUGIN = Plugin(
    name="rootfs-pressure-eviction-plugin", settings=Settings, start=lambda: None, evaluate=evaluate, rank=rank
)
