"""Pools without a cgroup of their own: what their pods' groups say, added up. Pure.

On a Kubernetes node kubelet sorts pods by its own classes, so no group holds a pool. Its readings are made of those of
its pods' groups, which hold whatever container runs in them, also one that has been made anew while nobody could be
told its name. Only raw values that a source declares to add up are summed; averages, limits and ratios are not.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from services.metrics.core.figures.results import Part, Reading
from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import Value

Sums = Mapping[str, frozenset[str]]
"""By source, the raw values that add up."""


def is_part(target: Target) -> bool:
    """Whether a target is one of the groups that make up a pool."""
    return target.kind == "pool" and bool(target.pool)


def part_of(pool: str, group: str = "") -> Target:
    """One group of a pool; without a group nothing, which makes the pool known to be empty while it has no others."""
    return Target("pool", pool, group, pool)


def whole(pool: str) -> Target:
    """A pool that is the sum of its parts."""
    return Target("pool", pool)


def nothing(sums: Sums, now_s: float) -> Reading:
    """What a pool without pods uses: nothing, which is known and not absent."""
    return Reading(now_s, {source: Part(now_s, dict.fromkeys(sorted(names), 0)) for source, names in sums.items()})


def pooled(readings: Mapping[Target, Reading], sums: Sums) -> dict[Target, Reading]:
    """The readings with the parts of each pool added up to one.

    A group that is not there is not in the sum, and a pool of which no group is there has no reading. Where the file of
    one group could not be read, the sum is not known. A pool made up of other groups than in the last pass is another
    one, so that its rates begin anew.
    """
    parts: dict[str, list[tuple[Target, Reading]]] = {}
    found: dict[Target, Reading] = {}
    for target, reading in readings.items():
        if is_part(target):
            parts.setdefault(target.pool, []).append((target, reading))
        else:
            found[target] = reading
    return found | {whole(pool): _sum(own, sums) for pool, own in parts.items()}


def _sum(own: Sequence[tuple[Target, Reading]], sums: Sums) -> Reading:
    made: dict[str, Part] = {}
    for source, names in sums.items():
        read = [part for _, reading in own if (part := reading.parts.get(source)) is not None]
        if len(read) == len(own):
            made[source] = Part(min(part.at_s for part in read), _added(read, names))
    return Reading(min(reading.at_s for _, reading in own), made, _identity(own))


def _added(read: Sequence[Part], names: frozenset[str]) -> dict[str, Value]:
    added: dict[str, Value] = {}
    for name in sorted(names):
        values = [value for part in read if isinstance(value := part.raw.get(name), int | float)]
        if len(values) == len(read):
            added[name] = sum(values)
    return added


def _identity(own: Sequence[tuple[Target, Reading]]) -> int:
    names = sorted(f"{target.group} {reading.identity}" for target, reading in own)
    return int.from_bytes(blake2b("\n".join(names).encode(), digest_size=8).digest())
