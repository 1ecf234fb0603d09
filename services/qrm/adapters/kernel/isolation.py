"""Writes what the isolation rules want if it is not in force, and restores what is no longer wanted."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from services.qrm.adapters.kernel.memory_use import memory_use
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.isolation.burst import within_quota
from services.qrm.core.isolation.rules import NEUTRAL, Values
from services.qrm.core.isolation.wanted import Key, in_order
from services.qrm.core.memory.limits import high_step
from services.qrm.core.writes.outcome import Problem
from services.qrm.former_values import FormerValues
from shared.core.cgroups.knobs import UNLIMITED, V1_FILES, V2_FILES, Knob, Write, quota_us

STUCK_TRIES = 10
"""So often a give-back waits for memory above `memory.high` to be reclaimed; then it is written all the same."""


@dataclass(frozen=True, slots=True)
class _Verified:
    """Values that were all found in force."""

    wanted: Values
    absent: frozenset[str]
    """Groups that are not there: of containers that have not come, or have ended before their pod."""
    at_s: float


@dataclass(slots=True)
class GroupIsolation:
    """The one place that writes these knobs. Times are monotonic seconds."""

    writer: CgroupWriter
    former: FormerValues = field(default_factory=FormerValues)
    """Former values of groups, recorded before the first write until they are restored."""
    lacking: tuple[str, ...] = ()
    """Files that something wanted needs and this kernel does not have."""
    _verified: _Verified | None = None
    _stuck: int = 0
    """How many tries in a row to give everything back had nothing to write, with something left."""

    def give_back(self, *, at_once: bool = False) -> list[Problem]:
        """Restore everything that was changed, in steps or at once; return what could not be written."""
        self._verified, self._stuck = None, STUCK_TRIES if at_once else self._stuck
        problems = self._settle({}, 0.0, 0.0)
        left = sorted({group for group, _ in self.former.of(NEUTRAL)})
        if not left or problems:
            self._stuck = 0
            return problems
        # Verified: nothing was written. Each such try costs a restore of the whole node, so they come to an end.
        self._stuck += self._verified is not None
        return [Problem(group, "goes back to its memory.high in steps; ask again") for group in left]

    def settle(self, wanted: Values, now_s: float, verify_s: float) -> list[Problem]:
        """Bring groups to these values; all found in force less than `verify_s` ago are not looked at again."""
        self._stuck = 0
        return self._settle(wanted, now_s, verify_s)

    def _settle(self, wanted: Values, now_s: float, verify_s: float) -> list[Problem]:
        last, exists = self._verified, self.writer.cgroups.exists
        recent = last is not None and now_s < last.at_s + verify_s
        if last is not None and recent and last.wanted == wanted and not any(map(exists, last.absent)):
            return []
        given = self.former.of(NEUTRAL)
        back = {key: one.value for key, one in given.items() if key not in wanted}
        there = {key: value for key, value in {**back, **wanted}.items() if exists(key[0])}
        now = {key: int(value) for key in there if (value := self.writer.cgroups.read(*key)) is not None}
        # Checked again: a group that has ended since has no files either, which says nothing about the kernel.
        unread = [key for key in there.keys() & wanted.keys() - now.keys() if exists(key[0])]
        self.lacking = self._files({knob for _, knob in unread})
        writes = [write for key in now if self.writer.differs(write := self._write(key, there[key], now[key]))]
        values = {(write.group, write.knob): int(write.value) for write in writes}
        unmarked = {key: now[key] for key in values.keys() - given.keys()}
        problems = self._keep(unmarked)
        if problems:
            values = {key: value for key, value in values.items() if key not in unmarked}
        order = in_order({key: (now[key], value) for key, value in values.items()})
        problems += self.writer.settle(Write(*key, values[key]) for key in order)
        # What could not be restored, or only in part, stays pending; an ended group needs no restore.
        owed = {key for key in back.keys() & now.keys() if problems or values.get(key, back[key]) != back[key]}
        owed |= {key for key in back.keys() & now.keys() if self._is_above(key, back[key])}
        problems += self._forget(back.keys() - owed)
        absent = frozenset(group for group, _ in wanted.keys() - there.keys())
        # Not verified even if all went well: the next pass reads back what the kernel made of it.
        self._verified = None if writes else _Verified(wanted, absent, now_s)
        return problems

    def _keep(self, found: Mapping[Key, int]) -> list[Problem]:
        try:
            self.former.record(FormerValue(group=group, knob=knob, value=now) for (group, knob), now in found.items())
        except OSError as error:
            # A value that could not be restored after a crash is not written at all.
            return [Problem(self.writer.top, f"what its groups have cannot be put on record ({error}): nothing new is "
                                             "written there; make room in the state folder")]  # fmt: skip
        return []

    def _forget(self, keys: Collection[Key]) -> list[Problem]:
        try:
            self.former.forget(keys)
        except OSError as error:
            return [Problem(self.writer.top, f"what was given back stays on record ({error}): it is given back again")]
        return []

    def _write(self, key: Key, value: int, now: int) -> Write:
        group, knob = key
        if knob is Knob.CPU_BURST:
            quota = self.writer.cgroups.raw(group, Knob.CPU_QUOTA)
            value = within_quota(value, None if quota is None else quota_us(quota))
        if knob is Knob.MEMORY_HIGH and value != UNLIMITED and self._stuck < STUCK_TRIES:
            # The kernel reclaims while the writer waits: in steps, as with limits.
            use = memory_use(self.writer.cgroups, group)
            value = value if use is None else high_step(value, now, use)
        return Write(group, knob, value)

    def _is_above(self, key: Key, value: int) -> bool:
        """Return whether a `memory.high` is still above a value: it is not written while the use does not fall."""
        return key[1] is Knob.MEMORY_HIGH and self.writer.differs(Write(*key, value))

    def _files(self, knobs: set[Knob]) -> tuple[str, ...]:
        if self.writer.cgroups.version == 2:
            return tuple(sorted(V2_FILES.get(knob, knob) for knob in knobs))
        return tuple(sorted(V1_FILES[knob][1] if knob in V1_FILES else knob for knob in knobs))
