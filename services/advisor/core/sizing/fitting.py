"""`fit_pools` fits requirements into the CPUs there are, in whole numbers (docs/facts/katalyst-cpu.md#assembler).

Of two pools that are equal to the rule, the one whose name comes first is served first: the same input gives the same
sizes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from shared.errors import Refused


@dataclass(frozen=True, slots=True)
class FittedPools:
    """Sizes by pool; `throttled`: together the pools wanted more than exists."""

    pools: Mapping[str, int]
    throttled: bool = False


def fit_pools(
    wanted: Mapping[str, int], fixed: Mapping[str, int], available_cpus: int, *, expand: bool, unit: int = 1
) -> FittedPools:
    """Return the sizes of the pools: what they want, or their share of what exists.

    Args:
        wanted: CPUs by pool.
        fixed: CPUs of pools that never get more than they want.
        available_cpus: for all of them.
        expand: the wanting pools divide what is left over.
        unit: CPUs that stay together, if all wishes are multiples of it and every pool can have one.
    """
    everything = {**wanted, **fixed}
    if sum(everything.values()) > available_cpus:
        return FittedPools(_throttled(everything, available_cpus, unit), throttled=True)
    if not expand:
        return FittedPools(dict(sorted(everything.items())))
    grown = _normalised(wanted, available_cpus - sum(fixed.values()))
    return FittedPools(dict(sorted({**grown, **fixed}.items())))


def _throttled(wanted: Mapping[str, int], available_cpus: int, unit: int) -> dict[str, int]:
    # Whole cores only where every pool wants whole ones and can get one.
    if any(size % unit for size in wanted.values()) or len(wanted) > available_cpus // unit:
        return _normalised(wanted, available_cpus)
    units = _normalised({pool: size // unit for pool, size in wanted.items()}, available_cpus // unit)
    return {pool: size * unit for pool, size in units.items()}


def _normalised(wanted: Mapping[str, int], target: int) -> dict[str, int]:
    """Return sizes proportional to what is wanted that add up to the target.

    Shares are rounded up, then reduced one by one. If every pool is down to one CPU and the sum is still too large, all
    of them run on all CPUs.
    """
    total = sum(wanted.values())
    if not total:
        return dict(sorted(wanted.items()))
    # Rounded up and then taken back, so that a small pool is not rounded away first.
    sizes = {pool: -(-size * target // total) for pool, size in sorted(wanted.items())}
    while sum(sizes.values()) > target:
        able = [pool for pool, size in sizes.items() if size > 1]
        if not able:
            return dict.fromkeys(sizes, target)
        sizes[_largest_part(able, sizes, wanted)] -= 1
    return sizes


def _largest_part(able: list[str], sizes: Mapping[str, int], wanted: Mapping[str, int]) -> str:
    """Of these pools (in order) the one with the largest size / wanted, then the largest size, then the first name."""
    best = able[0]
    for pool in able[1:]:
        # Multiplied crosswise: integers compare exactly where quotients would differ in the last digit.
        part, best_part = sizes[pool] * wanted[best], sizes[best] * wanted[pool]
        if part > best_part or (part == best_part and sizes[pool] > sizes[best]):
            best = pool
    return best


def overlap_of(pools: Mapping[str, int], required_cpus: int) -> dict[str, int]:
    """How many CPUs each pool shares with reclaimed pods so that they get what they must: the largest pool first.

    Raises:
        Refused: `overlap_exceeds_share`, the pools have fewer CPUs than required.
    """
    total = sum(pools.values())
    if required_cpus > total:
        raise Refused(
            f"{required_cpus} CPUs to borrow, the pools have {total}; lower the reserve for reclaimed pods",
            reason="overlap_exceeds_share",
        )
    overlap, left = {}, required_cpus
    for pool, size in sorted(pools.items(), key=lambda item: (-item[1], item[0])):
        part = min(-(-required_cpus * size // total) if total else 0, size, left)
        if part > 0:
            overlap[pool] = part
            left -= part
    return dict(sorted(overlap.items()))
