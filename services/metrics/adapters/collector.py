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
from services.metrics.core.reads.pooled import Sums, empty_pool, is_member, pooled
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
        self._caches: dict[Target, TargetCache] = {}
        self._together: tuple[Sequence[Target], Sequence[Target], list[Target]] | None = None
        self._unread: dict[str, str] = {}
        self.offered: dict[Kind, dict[str, OfferedFigures]] = {}
        for name, source in found.items():
            for kind, figures in source.figures.items():
                self._add(kind, name, source)
                offer = OfferedFigures.of(_unclaimed(figures, self.offered, kind, name), gated=kind in source.gates)
                self.offered.setdefault(kind, {})[name] = offer

    def collect(self, pods: Sequence[Pod], applications: Sequence[Target] = (), *, whole: bool = False) -> Collected:
        """Read everything that is due; a `whole` pass also reads moving targets whose sources pause. A cgroup that
        does not exist has no reading; a source that fails loses only its own figures.

        Raises:
            OSError: the host cannot be read at all.
        """
        targets = self._all_targets(pods, applications)
        self._whole = whole
        self._host.begin(targets)
        readings: dict[Target, TargetReading] = {}
        failures: dict[str, str] = {}
        self._unread = {}
        # Refilled with what this pass sees, so caches of removed cgroups are dropped.
        before, self._caches = self._caches, {}
        for target in targets:
            reading = self._read(target, before.get(target), failures)
            if reading is not None:
                readings[target] = reading
        return Collected(pooled(readings, self._sums), failures, self._unread, self._host.uncounted)

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
        always = self._always.get(target.kind, [])
        if self._whole:
            gated = self._without_pauses.get(target.kind, [])
        elif target.kind == "container" and target.pool == RECLAIM:
            gated = self._gated_of_batch
        else:
            gated = self._gated.get(target.kind, [])
        if not is_member(target):
            return always, gated
        return [one for one in always if one[0] in self._sums], [one for one in gated if one[0] in self._sums]

    def _read(self, target: Target, cache: TargetCache | None, failures: dict[str, str]) -> TargetReading | None:
        # Nothing to read: it only makes the pool known to be empty.
        if is_member(target) and not target.group:
            return empty_pool(self._sums, self._monotonic())
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
            return same
        found |= self._gated_readings(_Visit(target, cache, watched, now_s), gated, failures)
        reading = TargetReading(now_s, found, identity)
        # Of containers alone: they are hundreds, mostly at rest; pools and the node move in every pass.
        if target.kind == "container":
            cache.store_whole(reading)
        return reading

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
