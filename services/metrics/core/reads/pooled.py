"""Add up the readings of pools without a cgroup of their own from their pods' groups. Pure.

On a Kubernetes node kubelet sorts pods by its own classes, so no group holds a pool. The pool's readings are the sum
over its pods' groups, which contain every container, even one that was recreated and is not in the list of pods yet.
Only raw values that a source declares as additive are summed; averages, limits and ratios are not.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b

from services.metrics.core.figures.results import SourceReading, TargetReading
from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import Value

Sums = Mapping[str, frozenset[str]]
"""By source, the raw values that add up."""
Members = list[tuple[Target, TargetReading]]
"""The groups of a pool, in their order."""


def is_member(target: Target) -> bool:
    """Whether a target is one of the groups that make up a pool."""
    return target.kind == "pool" and bool(target.pool)


def member_of(pool: str, group: str = "") -> Target:
    """Return one group of a pool. Without a group it marks a pool that is known to be empty."""
    return Target("pool", pool, group, pool)


def pool_of_members(pool: str) -> Target:
    """A pool that is the sum of its parts."""
    return Target("pool", pool)


def empty_pool(sums: Sums, now_s: float) -> TargetReading:
    """Return the reading of a pool without pods: it uses nothing, which is known and not absent."""
    return TargetReading(
        now_s, {source: SourceReading(now_s, dict.fromkeys(sorted(names), 0)) for source, names in sums.items()}
    )


class Pools:
    """The pools of the last pass: the sum of groups that were not read again is what it was."""

    def __init__(self, sums: Sums, gated: Collection[str] = ()) -> None:
        """`gated`: the sources that are not read in every pass."""
        self._sums, self._gated = sums, gated
        self._last: dict[str, tuple[Members, TargetReading]] = {}

    def pooled(self, readings: Mapping[Target, TargetReading]) -> dict[Target, TargetReading]:
        """Return the readings as the function `pooled` does; of a pool whose groups' readings are all those of the last
        pass, the very same reading."""
        found, members = _sorted(readings)
        last, self._last = self._last, {}
        for pool, own in members.items():
            before, reading = last.get(pool, ([], None))
            if reading is None or not _same(before, own):
                reading = self._sum(own, before)
            self._last[pool] = own, reading
            found[pool_of_members(pool)] = reading
        return found

    def _sum(self, own: Members, before: Members) -> TargetReading:
        # A group that was not read again has stood still up to now: it does not make the sum any older.
        held = dict(before)
        fresh = [reading for target, reading in own if held.get(target) is not reading]
        made: dict[str, SourceReading] = {}
        for source, names in self._sums.items():
            read = [one for _, reading in own if (one := reading.sources.get(source)) is not None]
            # One group that failed leaves no sum: too small a total would pass for a quiet pool.
            if len(read) == len(own):
                new = [reading.sources[source] for reading in fresh] if source not in self._gated else read
                made[source] = SourceReading(min(one.at_s for one in new or read), _added(read, names))
        return TargetReading(min(reading.at_s for reading in fresh or held.values()), made, _identity(own))


def _same(before: Members, now: Members) -> bool:
    # Of an empty pool, which has nothing to read, each pass makes a reading.
    return len(before) == len(now) and all(
        a[0] == b[0] and (a[1] is b[1] or not a[0].group) for a, b in zip(before, now, strict=True)
    )


def pooled(readings: Mapping[Target, TargetReading], sums: Sums) -> dict[Target, TargetReading]:
    """Return the readings with the groups of each pool added up to one.

    A missing group is not in the sum, and a pool without any existing group has no reading. If the file of one group
    could not be read, the sum is unknown. A pool of other groups than in the last pass counts as a new one, so its
    rates begin again.
    """
    return Pools(sums).pooled(readings)


def _sorted(readings: Mapping[Target, TargetReading]) -> tuple[dict[Target, TargetReading], dict[str, Members]]:
    """The readings that are no part of a pool, and the parts by pool."""
    members: dict[str, Members] = {}
    found: dict[Target, TargetReading] = {}
    for target, reading in readings.items():
        if is_member(target):
            members.setdefault(target.pool, []).append((target, reading))
        else:
            found[target] = reading
    return found, members


def _added(read: Sequence[SourceReading], names: frozenset[str]) -> dict[str, Value]:
    added: dict[str, Value] = {}
    for name in sorted(names):
        values = [value for one in read if isinstance(value := one.raw.get(name), int | float)]
        if len(values) == len(read):
            added[name] = sum(values)
    return added


def _identity(own: Members) -> int:
    # With each group's own identity, because a counter that restarts in one of them would make the sum go back.
    names = sorted(f"{target.group} {reading.identity}" for target, reading in own)
    return int.from_bytes(blake2b("\n".join(names).encode(), digest_size=8).digest())
