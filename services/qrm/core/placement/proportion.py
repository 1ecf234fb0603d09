"""Proportional sizes share CPUs that are fewer than asked for (docs/facts/katalyst-cpu.md#sizes-without-advice)."""

from collections.abc import Mapping

from shared.core.cpus.taking.balanced import NOT_ENOUGH_CPUS
from shared.errors import Refused


def fit(requests: Mapping[str, int], available: int) -> dict[str, int]:
    """Size pools, by name: what they request, or their share of what is available, at least one CPU each.

    Shares are rounded up; while the sum is too large, the pools give up a CPU each in turn, the largest first, by name
    between equals. Sums never exceed what is available.

    Raises:
        Refused: `not_enough_cpus`, there are fewer CPUs than pools.
    """
    if len(requests) > available:
        raise Refused(
            f"{len(requests)} pools ({', '.join(sorted(requests))}) want a CPU each, {available} can be given",
            reason=NOT_ENOUGH_CPUS,
        )
    wanted = {name: max(1, request) for name, request in sorted(requests.items())}
    total = sum(wanted.values())
    if total <= available:
        return wanted
    sizes = {name: max(1, -(-available * request // total)) for name, request in wanted.items()}
    while (over := sum(sizes.values()) - available) > 0:
        for name in sorted(sizes, key=lambda name: (-sizes[name], name))[:over]:
            sizes[name] -= sizes[name] > 1
    return sizes
