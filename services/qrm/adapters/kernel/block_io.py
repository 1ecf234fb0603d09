"""Writes block I/O limits of the reclaimed class, disk by disk, if they are not in force, and restores them."""

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.isolation.block_io import BlockLimits, limited_groups
from services.qrm.core.writes.classes import RECLAIMED
from services.qrm.core.writes.outcome import Problem
from services.qrm.former_values import DeviceKey, FormerValues
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.sysfs import disk_number
from shared.contracts.pod import Pod
from shared.core.cgroups.block_io import COST_FILES, IO_KNOBS, V1_CONTROLLER, io_file, io_line, io_values
from shared.core.cgroups.knobs import Knob, Version
from shared.core.cgroups.layout import Layout

ON_ONE_HOST = "limits of disks: on one host groups have no controller for them"
_NOTHING: Mapping[DeviceKey, int] = {}
_MOST_NAMED = 3
_NOT_THIS_DISK = (errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL)
"""Errors of a kernel that cannot limit a disk this way; it will answer the same at the next pass."""


@dataclass(frozen=True, slots=True)
class _Verified:
    """What was last found in force."""

    wanted: Mapping[DeviceKey, int]
    at_s: float


@dataclass(slots=True)
class _Written:
    """The result of one pass of writes."""

    problems: list[Problem] = field(default_factory=list)
    refused: dict[str, None] = field(default_factory=dict)
    """What the kernel cannot do with a disk, in words."""
    lines: int = 0
    """How many lines the kernel took."""


@dataclass(slots=True)
class DiskLimits:
    """The one place that writes limits of disks. Times are monotonic seconds."""

    cgroups: Cgroups
    layout: Layout
    former: FormerValues
    lacking: tuple[str, ...] = ()
    """Files that a limit needs and this kernel does not have."""
    unheeded: tuple[str, ...] = ()
    """Limits that have no effect on this machine, and why."""
    _refused: tuple[str, ...] = ()
    _verified: _Verified | None = None

    def settle(
        self, pods: Sequence[Pod], limits: Sequence[BlockLimits], now_s: float, verify_s: float
    ) -> list[Problem]:
        """Bring the class to these limits; all found in force less than `verify_s` ago are not looked at again."""
        if self.layout.classes:
            self.unheeded = (ON_ONE_HOST,) if limits else ()
            return []
        wanted, unheeded = self._wanted(pods, limits)
        last = self._verified
        if last is None or last.wanted != wanted or now_s >= last.at_s + verify_s:
            written = self._write(wanted)
            # Not verified even if all went well: the next pass reads back what the kernel made of it.
            self._verified = None if written.lines or written.problems else _Verified(wanted, now_s)
            self._refused = tuple(written.refused)[:_MOST_NAMED]
        else:
            written = _Written()
        self.unheeded = (*unheeded, *self._refused)
        return written.problems

    def give_back(self) -> list[Problem]:
        """Write what groups had before; what could not be written."""
        self._verified, self.unheeded = None, ()
        return self._write(_NOTHING).problems

    def may_be_given(self, pods: Sequence[Pod]) -> list[FormerValue]:
        """Return the existing lines that may contain limits of ours; no limit counts as their former value."""
        if self.layout.classes:
            return []
        together = self.layout.reclaimed_group(())
        own = {self.layout.pod_group(pod) for pod in pods if pod.qos == RECLAIMED}
        version, found = self.cgroups.version, list[FormerValue]()
        for group in sorted(own if together is None else {together, *own}):
            for knob in IO_KNOBS:
                text = self.cgroups.text(group, io_file(knob, version), V1_CONTROLLER) or ""
                found += [_former((group, knob, disk), 0) for disk in io_values(knob, text, version) if ":" in disk]
        return found

    def _wanted(self, pods: Sequence[Pod], limits: Sequence[BlockLimits]) -> tuple[dict[DeviceKey, int], list[str]]:
        """The values, and what of the limits has no effect."""
        found: dict[DeviceKey, int] = {}
        names: dict[str, str] = {}
        unheeded = []
        for one in limits:
            disk = disk_number(self.cgroups.host_root, one.device)
            if disk is None:
                unheeded.append(f"limits of the disk {one.device}: this machine has no such device")
                continue
            first = names.setdefault(disk, one.device)
            if first != one.device:
                unheeded.append(f"limits of {one.device} and {first}: both are the disk {disk}, and the smaller hold")
            for group in limited_groups(pods, self.layout):
                for knob, value in one.values().items():
                    found[group, knob, disk] = min(value, found.get((group, knob, disk), value))
        return found, unheeded

    def _write(self, wanted: Mapping[DeviceKey, int]) -> _Written:
        given = self.former.of_devices(IO_KNOBS)
        back = {key: one.value for key, one in given.items() if key not in wanted}
        there = {key: value for key, value in {**back, **wanted}.items() if self.cgroups.exists(key[0])}
        now = self._now(there)
        self.lacking = self._lacking(there.keys() & wanted.keys() - now.keys())
        changes = {key: there[key] for key in sorted(now) if now[key] != there[key]}
        try:
            self.former.record(_former(key, now[key]) for key in changes if key not in given)
        except OSError as error:
            why = f"limits of disks cannot be put on record ({error}): none is written; make room in the state folder"
            return _Written([Problem(self.layout.top, why)])
        written = _Written()
        for key, value in changes.items():
            self._line(key, value, written)
        if not written.problems:
            try:
                self.former.forget_devices(back.keys())
            except OSError as error:
                why = f"limits of disks that were given back stay on record ({error}): they are given back again"
                written.problems.append(Problem(self.layout.top, why))
        return written

    def _now(self, keys: Mapping[DeviceKey, int]) -> dict[DeviceKey, int]:
        """The values in force; those without a file are left out."""
        version, found = self.cgroups.version, dict[DeviceKey, int]()
        for group, knob in sorted({key[:2] for key in keys}):
            text = self.cgroups.text(group, io_file(knob, version), V1_CONTROLLER)
            if text is not None:
                values = io_values(knob, text, version)
                found |= {key: values.get(key[2], 0) for key in keys if key[:2] == (group, knob)}
        return found

    def _line(self, key: DeviceKey, value: int, written: _Written) -> None:
        group, knob, disk = key
        name, version = io_file(knob, self.cgroups.version), self.cgroups.version
        line = io_line(knob, disk, value, version)
        try:
            self.cgroups.write_line(group, name, line, V1_CONTROLLER)
        except OSError as error:
            if not self.cgroups.exists(group):
                return  # its pod has ended meanwhile
            if error.errno in _NOT_THIS_DISK:
                written.refused[f"{name}={line}: {error.strerror}; {_hint(error.errno, knob, disk, version)}"] = None
            else:
                written.problems.append(Problem(group, f"{name}={line}: {error.strerror}"))
        else:
            written.lines += 1

    def _lacking(self, keys: "set[DeviceKey]") -> tuple[str, ...]:
        knobs: set[Knob] = {knob for group, knob, _ in keys if self.cgroups.exists(group)}
        return tuple(sorted({io_file(knob, self.cgroups.version) for knob in knobs}))


def _hint(code: int, knob: Knob, disk: str, version: Version) -> str:
    if code == errno.ENODEV:
        return "it is no disk that can be bounded"
    if code == errno.EOPNOTSUPP and knob is Knob.IO_WEIGHT:
        return f"disks are weighed by io.cost: write '{disk} enable=1' to {COST_FILES[version]} of the root group"
    return "the kernel does not do it with this disk: leave it out of qrm.block_io"


def _former(key: DeviceKey, value: int) -> FormerValue:
    group, knob, disk = key
    return FormerValue(group=group, knob=knob, device=disk, value=value)
