"""Block I/O limits are written to the reclaimed class, disk by disk, where they are not in force, and given back."""

import errno
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.isolation.block_io import BlockLimits, limited_groups
from services.qrm.core.writes.outcome import Problem
from services.qrm.former_values import DeviceKey, FormerValues
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.sysfs import disk_number
from shared.contracts.pod import Pod
from shared.core.cgroups.block_io import IO_KNOBS, V1_CONTROLLER, io_file, io_line, io_values
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import Layout

ON_ONE_HOST = "limits of disks: on one host groups have no controller for them"
_NOTHING: Mapping[DeviceKey, int] = {}


@dataclass(frozen=True, slots=True)
class _Verified:
    """What was all found in force."""

    wanted: Mapping[DeviceKey, int]
    at_s: float


@dataclass(slots=True)
class DiskLimits:
    """The one place that writes limits of disks. Times are monotonic seconds."""

    cgroups: Cgroups
    layout: Layout
    former: FormerValues
    lacking: tuple[str, ...] = ()
    """Files that a limit needs and this kernel does not have."""
    unheeded: tuple[str, ...] = ()
    """What of the limits has no effect on this machine, and why."""
    _verified: _Verified | None = None

    def settle(
        self, pods: Sequence[Pod], limits: Sequence[BlockLimits], now_s: float, verify_s: float
    ) -> list[Problem]:
        """Bring the class to these limits; all found in force less than `verify_s` ago are not looked at again."""
        if self.layout.classes:
            self.unheeded = (ON_ONE_HOST,) if limits else ()
            return []
        wanted = self._wanted(pods, limits)
        last = self._verified
        if last is not None and last.wanted == wanted and now_s < last.at_s + verify_s:
            return []
        problems, written = self._write(wanted)
        # Not verified even if all went well: the next pass reads back what the kernel made of it.
        self._verified = None if written or problems else _Verified(wanted, now_s)
        return problems

    def give_back(self) -> list[Problem]:
        """Write what groups had before; what could not be written."""
        self._verified, self.unheeded = None, ()
        return self._write(_NOTHING)[0]

    def _wanted(self, pods: Sequence[Pod], limits: Sequence[BlockLimits]) -> dict[DeviceKey, int]:
        found: dict[DeviceKey, int] = {}
        absent = []
        for one in limits:
            disk = disk_number(self.cgroups.host_root, one.device)
            if disk is None:
                absent.append(f"limits of the disk {one.device}: this machine has no such device")
                continue
            for group in limited_groups(pods, self.layout):
                found |= {(group, knob, disk): value for knob, value in one.values().items()}
        self.unheeded = tuple(absent)
        return found

    def _write(self, wanted: Mapping[DeviceKey, int]) -> tuple[list[Problem], bool]:
        """The problems, and whether anything was to be written."""
        given = self.former.of_devices(IO_KNOBS)
        back = {key: one.value for key, one in given.items() if key not in wanted}
        there = {key: value for key, value in {**back, **wanted}.items() if self.cgroups.exists(key[0])}
        now = self._now(there)
        self.lacking = self._lacking(there.keys() & wanted.keys() - now.keys())
        changes = {key: there[key] for key in sorted(now) if now[key] != there[key]}
        try:
            self.former.keep(_former(key, now[key]) for key in changes if key not in given)
        except OSError as error:
            why = f"limits of disks cannot be put on record ({error}): none is written; make room in the state folder"
            return [Problem(self.layout.top, why)], True
        problems = [problem for key, value in changes.items() for problem in self._line(key, value)]
        if not problems:
            try:
                self.former.forget_devices(back.keys())
            except OSError as error:
                why = f"limits of disks that were given back stay on record ({error}): they are given back again"
                problems = [Problem(self.layout.top, why)]
        return problems, bool(changes)

    def _now(self, keys: Mapping[DeviceKey, int]) -> dict[DeviceKey, int]:
        """The values in force; those without a file are left out."""
        version, found = self.cgroups.version, dict[DeviceKey, int]()
        for group, knob in sorted({key[:2] for key in keys}):
            text = self.cgroups.text(group, io_file(knob, version), V1_CONTROLLER)
            if text is not None:
                values = io_values(knob, text, version)
                found |= {key: values.get(key[2], 0) for key in keys if key[:2] == (group, knob)}
        return found

    def _line(self, key: DeviceKey, value: int) -> Iterator[Problem]:
        group, knob, disk = key
        name, version = io_file(knob, self.cgroups.version), self.cgroups.version
        line = io_line(knob, disk, value, version)
        try:
            self.cgroups.write_line(group, name, line, V1_CONTROLLER)
        except OSError as error:
            hint = "; it is no disk that can be bounded" if error.errno == errno.ENODEV else ""
            yield Problem(group, f"{name}={line}: {error.strerror}{hint}")

    def _lacking(self, keys: "set[DeviceKey]") -> tuple[str, ...]:
        knobs: set[Knob] = {knob for group, knob, _ in keys if self.cgroups.exists(group)}
        return tuple(sorted({io_file(knob, self.cgroups.version) for knob in knobs}))


def _former(key: DeviceKey, value: int) -> FormerValue:
    group, knob, disk = key
    return FormerValue(group=group, knob=knob, device=disk, value=value)
