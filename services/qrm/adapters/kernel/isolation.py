"""Isolation writes what its rules want where that is not in force, and gives back what is not wanted any more."""

from dataclasses import dataclass, field

from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.isolation.burst import within_quota
from services.qrm.core.isolation.rules import NEUTRAL, Values
from services.qrm.core.writes.outcome import Problem
from shared.core.cgroups.knobs import UNLIMITED, V1_FILES, V2_FILES, Knob, Write


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
    lacking: tuple[str, ...] = ()
    """Files that something wanted needs and this kernel does not have."""
    _given: set[tuple[str, Knob]] = field(default_factory=set)
    """Where a value may be in force that is to be given back one day."""
    _verified: _Verified | None = None

    def settle(self, wanted: Values, now_s: float, verify_s: float) -> list[Problem]:
        """Bring groups to these values; all found in force less than `verify_s` ago are not looked at again."""
        last, exists = self._verified, self.writer.cgroups.exists
        recent = last is not None and now_s < last.at_s + verify_s
        if last is not None and recent and last.wanted == wanted and not any(map(exists, last.absent)):
            return []
        back = {key: NEUTRAL[key[1]] for key in self._given - wanted.keys()}
        there = {key: value for key, value in {**back, **wanted}.items() if exists(key[0])}
        readable = {key: value for key, value in there.items() if self.writer.cgroups.raw(*key) is not None}
        self.lacking = self._files({knob for _, knob in there.keys() & wanted.keys() - readable.keys()})
        writes = [write for key, value in readable.items() if self.writer.differs(write := self._write(key, value))]
        problems = self.writer.settle(writes)
        # What could not be given back is owed on; of what is wanted anything may be in force, also after an error.
        self._given = {*(readable.keys() & wanted.keys()), *(back.keys() & there.keys() if problems else ())}
        absent = frozenset(group for group, _ in wanted.keys() - there.keys())
        # Not verified even if all went well: the next pass reads back what the kernel made of it.
        self._verified = None if writes else _Verified(wanted, absent, now_s)
        return problems

    def _write(self, key: tuple[str, Knob], value: int) -> Write:
        group, knob = key
        if knob is Knob.CPU_BURST:
            quota = self.writer.cgroups.read(group, Knob.CPU_QUOTA)
            value = within_quota(value, None if quota in (None, UNLIMITED) else int(quota or 0))
        return Write(group, knob, value)

    def _files(self, knobs: set[Knob]) -> tuple[str, ...]:
        if self.writer.cgroups.version == 2:
            return tuple(sorted(V2_FILES.get(knob, knob) for knob in knobs))
        return tuple(sorted(V1_FILES[knob][1] if knob in V1_FILES else knob for knob in knobs))
