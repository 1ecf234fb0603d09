"""Read the host in one pass: every source reads every target of its kinds, if it is due."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from services.metrics.adapters.host import HostReader
from services.metrics.core.figures.figure import Figure, OfferedFigures, Total
from services.metrics.core.figures.results import SourceReading, TargetReading
from services.metrics.core.figures.target import ALL_GROUPS, Kind, Target
from services.metrics.core.figures.values import CpuTicks, Raw, Value
from services.metrics.core.reads.gates import Gate, turn_of
from services.metrics.core.reads.pooled import Pools, Sums, empty_pool, is_member, member_of
from services.metrics.core.reads.stillness import Stillness
from services.metrics.core.reads.target_cache import TargetCache
from services.metrics.core.source import Source
from services.metrics.ports import Collected
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import RECLAIM
from shared.errors import Refused

_ERRORS = (OSError, ValueError, IndexError, ArithmeticError)

Always = list[tuple[str, Source]]
Gated = list[tuple[str, Source, Gate]]


class _Visit(NamedTuple):
    """One target in one pass: its cache, and what was read of it that gates watch."""

    target: Target
    cache: TargetCache
    watched: Raw
    now_s: float


class Collector:
    """Reads the targets of a pass in their order, each with its own time stamp."""

    def __init__(
        self,
        host: HostReader,
        found: Mapping[str, Source],
        targets: Callable[[Sequence[Pod]], Sequence[Target]],
        monotonic: Callable[[], float],
    ) -> None:
        self._host, self._targets, self._monotonic = host, targets, monotonic
        self._always: dict[Kind, Always] = {}
        self._gated: dict[Kind, Gated] = {}
        self._gated_of_batch: Gated = []
        """Of batch work's containers."""
        self._without_pauses: dict[Kind, Gated] = {}
        self._whole = True
        self._sums: Sums = {name: source.adds_up for name, source in found.items() if source.adds_up}
        gated = {name for name, source in found.items() if "pool" in source.gates}
        self._pools, self._stillness = Pools(self._sums, gated), Stillness()
        self._homes: tuple[Sequence[Target], list[Target]] = ((), [])
        """The groups that hold those of pods, for the targets of the last pass."""
        self._caches: dict[Target, TargetCache] = {}
        self._together: tuple[Sequence[Target], Sequence[Target], list[Target]] | None = None
        self._unread: dict[str, str] = {}
        self.offered: dict[Kind, dict[str, OfferedFigures]] = {}
        for name, source in found.items():
            for kind, figures in source.figures.items():
                self._add(kind, name, source)
                offer = OfferedFigures.of(_unclaimed(figures, self.offered, kind, name), gated=kind in source.gates)
                self.offered.setdefault(kind, {})[name] = offer
        self._every_of_members = [one for one in self._always.get("pool", []) if one[0] in self._sums]
        self._gated_of_members = [
            [one for one in gated.get("pool", []) if one[0] in self._sums]
            for gated in (self._gated, self._without_pauses)
        ]
        """Those of parts of a pool, which only add up; in a pass that is not whole, and in one that is."""

    def collect(self, pods: Sequence[Pod], applications: Sequence[Target] = (), *, whole: bool = False) -> Collected:
        """Read everything that is due; a `whole` pass also reads moving targets whose sources pause. A cgroup that
        does not exist has no reading; a source that fails loses only its own figures.

        Raises:
            OSError: the host cannot be read at all.
        """
        targets = self._all_targets(pods, applications)
        self._whole = whole
        self._host.begin(targets)
        self._stillness.begin(self._read_homes(targets))
        readings: dict[Target, TargetReading] = {}
        failures: dict[str, str] = {}
        self._unread = {}
        # Refilled with what this pass sees, so caches of removed cgroups are dropped.
        before, self._caches = self._caches, {}
        for target in targets:
            reading = self._read(target, before.get(target), failures)
            if reading is not None:
                readings[target] = reading
        return Collected(self._pools.pooled(readings), failures, self._unread, self._host.uncounted)

    def _read_homes(self, targets: Sequence[Target]) -> dict[str, Raw]:
        """What is read in every pass of the groups that hold pods' groups; without those where a source fails."""
        if self._homes[0] is not targets:
            names = {target.group.rpartition("/")[0] for target in targets if is_member(target) and target.group}
            self._homes = targets, [member_of("", name) for name in sorted(names) if name]
        found: dict[str, Raw] = {}
        for home in self._homes[1]:
            read = [self._try(name, source, home, {}) for name, source in self._every_of_members]
            if None not in read:
                found[home.group] = {name: value for raw in read if raw for name, value in raw.items()}
        return found

    def _all_targets(self, pods: Sequence[Pod], applications: Sequence[Target]) -> Sequence[Target]:
        """The very same list as long as nothing has changed: by that the host knows."""
        targets = self._targets(pods)
        if not applications:
            return targets
        if self._together is None or self._together[0] is not targets or self._together[1] is not applications:
            self._together = (targets, applications, [*targets, *applications])
        return self._together[2]

    def close(self) -> None:
        """Close the files that are kept open."""
        self._host.close()

    def _add(self, kind: Kind, name: str, source: Source) -> None:
        """Sources whose figures of this kind are all totals read nothing."""
        if all(isinstance(figure, Total) for figure in source.figures[kind]):
            return
        gate = source.gates.get(kind)
        if gate is None:
            self._always.setdefault(kind, []).append((name, source))
        else:
            # A fallback source comes after the one that it replaces, because by then it is known whether that has
            # figures.
            gated = [*self._gated.get(kind, []), (name, source, gate)]
            self._gated[kind] = sorted(gated, key=lambda one: bool(one[2].stands_in_for))
            if kind == "container":
                self._gated_of_batch = [(name, source, gate.of_batch()) for name, source, gate in self._gated[kind]]
            self._without_pauses.setdefault(kind, []).append((name, source, replace(gate, pause_s=0.0)))

    def _sources(self, target: Target) -> tuple[Always, Gated]:
        """Return the sources of a target that are read in every pass, and those behind a gate; for a part of a pool
        only the ones that add up."""
        if is_member(target):
            return self._every_of_members, self._gated_of_members[self._whole]
        always = self._always.get(target.kind, [])
        if self._whole:
            gated = self._without_pauses.get(target.kind, [])
        elif target.kind == "container" and target.pool == RECLAIM:
            gated = self._gated_of_batch
        else:
            gated = self._gated.get(target.kind, [])
        return always, gated

    def _read(self, target: Target, cache: TargetCache | None, failures: dict[str, str]) -> TargetReading | None:
        # Nothing to read: it only makes the pool known to be empty.
        if is_member(target) and not target.group:
            return empty_pool(self._sums, self._monotonic())
        if cache is not None and (held := self._held(target, cache)) is not None:
            return held
        try:
            identity = self._host.identity(target) if target.kind in ALL_GROUPS else 0
        except (OSError, Refused) as error:
            return self._unreadable(target, error, failures)
        if identity is None:
            self._not_there(target)
            return None
        if cache is None or cache.identity != identity:
            cache = TargetCache(identity, turn_of(target))
        self._caches[target] = cache
        now_s = self._host.now_s = self._monotonic()
        found, watched = dict[str, SourceReading](), dict[str, Value | CpuTicks]()
        always, gated = self._sources(target)
        for name, source in always:
            raw = self._try(name, source, target, failures)
            if raw is not None:
                found[name] = SourceReading(now_s, raw)
                watched.update(raw)
        # Only if all were read: a failed source might have had a new value.
        if len(found) == len(always) and (same := cache.unchanged(found, gated, now_s)) is not None:
            self._stillness.add(target.group, watched)
            return same
        found |= self._gated_readings(_Visit(target, cache, watched, now_s), gated, failures)
        reading = TargetReading(now_s, found, identity)
        # Of pods and containers alone: they are hundreds, mostly at rest; pools and the node move in every pass.
        if target.kind == "container" or is_member(target):
            cache.store_whole(reading)
        return reading

    def _held(self, target: Target, cache: TargetCache) -> TargetReading | None:
        """Return the last reading of a target that stands still with the group above it."""
        if not self._stillness.holds(target.group):
            return None
        held = cache.held(*self._sources(target), self._monotonic())
        if held is not None:
            self._caches[target] = cache
        return held

    def _unreadable(self, target: Target, error: Exception, failures: dict[str, str]) -> TargetReading | None:
        # A wrong name in the settings of an application is no illness of this service.
        if target.kind == "application":
            self._unread[target.name] = str(error)
            return None
        failures.setdefault("cgroup", f"{target.group}: {error}")
        # A reading without sources makes the pool's sum unknown; none at all would leave this group out of it.
        return TargetReading(self._monotonic(), {}) if is_member(target) else None

    def _not_there(self, target: Target) -> None:
        if target.kind == "application":
            self._unread[target.name] = f"no cgroup {target.group} on this node: it does not run, or runs elsewhere"

    def _gated_readings(self, visit: _Visit, gated: Gated, failures: dict[str, str]) -> dict[str, SourceReading]:
        """Return for each gated source the last reading, or a new one if it is due."""
        found = dict[str, SourceReading]()
        for name, source, declared in gated:
            gate = declared.among(reading.raw for reading in found.values()) if declared.stands_in_for else declared
            reading, moving = visit.cache.still_valid(name, gate, visit.watched, visit.now_s)
            if reading is None:
                raw = self._try(name, source, visit.target, failures)
                if raw is None:
                    # Read again in the next pass, because an error may be over by then.
                    visit.cache.forget(name)
                    continue
                reading = SourceReading(visit.now_s, raw)
                visit.cache.store(name, gate, reading, (visit.watched, moving))
            found[name] = reading
        return found

    def _try(self, name: str, source: Source, target: Target, failures: dict[str, str]) -> Raw | None:
        try:
            return source.read(self._host, target)
        except _ERRORS as error:
            # The first of each source: one disk that fails for all containers is one sentence.
            failures.setdefault(name, f"{target.group or target.kind}: {error}")
            return None


def _unclaimed(
    figures: tuple[Figure, ...], offered: Mapping[Kind, Mapping[str, OfferedFigures]], kind: Kind, source: str
) -> tuple[Figure, ...]:
    """The figures, if no other source offers one of the same name.

    Raises:
        ValueError: two sources would overwrite each other.
    """
    taken = {figure.name for offer in offered.get(kind, {}).values() for figure in offer.figures}
    for figure in figures:
        if figure.name in taken:
            raise ValueError(f"source {source!r}: another source already offers {figure.name!r} for {kind}; rename one")
    return figures
