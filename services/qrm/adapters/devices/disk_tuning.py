"""Disk tuning sets write-back throttling and io.cost of whole disks if they differ, and restores them."""

import errno
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from services.qrm.adapters.devices.queues import WBT_FILE, DiskQueues
from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.devices.disk_lines import (
    NO_DISK_RULES,
    Disk,
    DiskRules,
    disk_lines,
    in_force,
    line_before,
    read_lines,
    wanted_wbt,
)
from services.qrm.core.writes.outcome import Problem
from services.qrm.former_values import FormerValues
from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.block_io import DISK_KNOBS
from shared.core.cgroups.knobs import Knob

ROOT, DISKS = "", "disks"
"""The root group, which has the files of io.cost, and the name under which a disk's own values are recorded."""
COST_FILES: Mapping[Knob, str] = {Knob.IO_COST_MODEL: "io.cost.model", Knob.IO_COST_QOS: "io.cost.qos"}
"""The model first: io.cost shall not begin with the kernel's own."""
SKIPPED = {
    "cgroup_v1": "io.cost of disks: it needs cgroup v2",
    "wbt_active": "io.cost of {}: write-back throttling is on there; set qrm.disks.wbt and wbt_us: 0 of its class, "
    "or qrm.disks.check_wbt: false",
}
_REFUSED = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENODEV)
"""Errors of a kernel that cannot set a disk this way; it will answer the same at the next pass."""
READ_ONLY = "write-back throttling: /sys is mounted read-only here; set node.disks of the chart"
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Setting:
    """One value of one disk: what it is, whether it is in force, and what was there; None: that is not known."""

    what: str
    in_force: bool
    before: FormerValue | None
    write: Callable[[], object]


@dataclass(slots=True)
class _Pass:
    """The result of one pass."""

    problems: list[Problem] = field(default_factory=list)
    unheeded: dict[str, None] = field(default_factory=dict)
    lacking: set[str] = field(default_factory=set)
    writes: int = 0

    def refuse(self, what: str, error: OSError) -> None:
        """Take note of a write that failed."""
        if error.errno == errno.EROFS and what.startswith(WBT_FILE):
            self.unheeded[READ_ONLY] = None
        elif error.errno in _REFUSED:
            self.unheeded[f"{what}: {error.strerror}: the kernel does not do it with this disk"] = None
        else:
            self.problems.append(Problem(DISKS, f"{what}: {error.strerror}"))


@dataclass(slots=True)
class DiskTuning:
    """The one place that writes these. Times are monotonic seconds."""

    cgroups: Cgroups
    queues: DiskQueues
    former: FormerValues
    lacking: tuple[str, ...] = ()
    """Files that a setting needs and this kernel does not have."""
    unheeded: tuple[str, ...] = ()
    """Settings that have no effect on this machine, and why."""
    _verified: tuple[DiskRules, float] | None = None

    def settle(self, rules: DiskRules, now_s: float, verify_s: float) -> list[Problem]:
        """Bring the disks to these rules; all found in force less than `verify_s` ago is not looked at again."""
        last = self._verified
        if last is not None and last[0] == rules and now_s < last[1] + verify_s:
            return []
        done = _Pass()
        if rules.wbt or rules.cost or self.former.of_devices(DISK_KNOBS):
            try:
                self._settle(rules, done)
            except OSError as error:
                done.problems.append(Problem(DISKS, f"cannot be read ({error}): they stay as they are"))
        self.lacking, self.unheeded = tuple(sorted(done.lacking)), tuple(done.unheeded)[:_MOST_NAMED]
        # Not verified even if all went well: the next pass reads back what the kernel made of it.
        self._verified = None if done.writes or done.problems else (rules, now_s)
        return done.problems

    def give_back(self) -> list[Problem]:
        """Set disks as they were before; what could not be written."""
        self._verified = None
        return self.settle(NO_DISK_RULES, 0.0, 0.0)

    def _settle(self, rules: DiskRules, done: _Pass) -> None:
        disks = self.queues.disks()
        self._throttle(disks, rules, done)
        if rules.cost or self.former.of_devices(COST_FILES):
            # Read again: whether io.cost may be on depends on what the throttling has become, not on what was
            # attempted.
            self._cost(self.queues.disks(), replace(rules, wbt=False), done)

    def _throttle(self, disks: Sequence[Disk], rules: DiskRules, done: _Pass) -> None:
        wanted = {disk.number: us for disk in disks if (us := wanted_wbt(disk.kind, rules)) is not None}
        goal = {number: one.value for number, one in self._given(Knob.WBT).items()} | wanted
        settings = {}
        for disk in disks:
            if disk.number not in goal:
                continue
            if not self.queues.has_throttling(disk):
                done.lacking |= {WBT_FILE} if disk.number in wanted else set()
                continue
            now, to = disk.wbt_us, goal[disk.number]
            before = None if now is None else _former(Knob.WBT, disk.number, value=now)
            write = partial(self.queues.throttle, disk, to)
            settings[disk.number] = _Setting(f"{WBT_FILE} of {disk.name}={to}", now == to, before, write)
        self._bring(Knob.WBT, settings, wanted, done)

    def _cost(self, disks: Sequence[Disk], rules: DiskRules, done: _Pass) -> None:
        lines = {disk: disk_lines(disk, rules, cgroup_v2=self.cgroups.version == 2) for disk in disks}
        reasons = {disk: SKIPPED.get(one.skipped or "") for disk, one in lines.items()}
        done.unheeded |= {reason.format(disk.name): None for disk, reason in reasons.items() if reason is not None}
        models = {disk.number: one.model_line for disk, one in lines.items() if one.model_line is not None}
        qos = {disk.number: one.qos_line for disk, one in lines.items() if one.qos_line is not None}
        there = {disk.number for disk in disks}
        for knob, wanted in ((Knob.IO_COST_MODEL, models), (Knob.IO_COST_QOS, qos)):
            self._cost_file(knob, wanted, there, done)

    def _cost_file(self, knob: Knob, wanted: Mapping[str, str], there: Collection[str], done: _Pass) -> None:
        back = {number: one.text for number, one in self._given(knob).items() if number in there}
        goal = {**back, **wanted}
        name = COST_FILES[knob]
        text = self.cgroups.text(ROOT, name) if goal else ""
        if text is None:
            done.lacking |= {name} if wanted else set()
            goal = {}
        now, settings = read_lines(text or ""), {}
        for number, line in goal.items():
            before = _former(knob, number, text=line_before(number, now.get(number), qos=knob is Knob.IO_COST_QOS))
            write = partial(self.cgroups.write_line, ROOT, name, line)
            settings[number] = _Setting(f"{name}={line}", in_force(line, now.get(number)), before, write)
        self._bring(knob, settings, wanted, done)

    def _bring(self, knob: Knob, settings: Mapping[str, _Setting], wanted: Collection[str], done: _Pass) -> None:
        """Write what is not in force, once it is on record what was there; forget what has been given back."""
        given = self._given(knob)
        open_ = {number: one for number, one in settings.items() if not one.in_force}
        fresh = {number: one.before for number, one in open_.items() if number not in given}
        try:
            self.former.record(one for one in fresh.values() if one is not None)
        except OSError as error:
            why = (
                f"what disks have cannot be put on record ({error}): nothing is written; make room in the state folder"
            )
            done.problems.append(Problem(DISKS, why))
            return
        failed = set()
        for number, one in open_.items():
            # An unreadable existing value could not be restored.
            if fresh.get(number, one.before) is None and number not in given:
                done.unheeded[f"{one.what}: what is there now cannot be read, so it is left"] = None
                continue
            try:
                one.write()
            except OSError as error:
                failed.add(number)
                done.refuse(one.what, error)
            else:
                done.writes += 1
        try:
            self.former.forget_devices((ROOT, knob, number) for number in given.keys() - set(wanted) - failed)
        except OSError as error:
            done.problems.append(Problem(DISKS, f"what was given back stays on record ({error}): it is done again"))

    def _given(self, knob: Knob) -> dict[str, FormerValue]:
        return {number: one for (_, _, number), one in self.former.of_devices((knob,)).items()}


def _former(knob: Knob, number: str, *, value: int = 0, text: str = "") -> FormerValue:
    return FormerValue(group=ROOT, knob=knob, device=number, value=value, text=text)
