"""`util_capacity_cores` sizes the offer by how much of the pool is used (docs/facts/katalyst-cpu.md#headroom).

Reclaimed pods seldom use all that they ask for. While the pool is used less than its target more is offered than it
holds, so that it fills; above the maximum the offer shrinks again.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UtilRules:
    """How far the offer may leave what the pool holds; the defaults are Katalyst's.

    Facts: docs/facts/katalyst-cpu.md#headroom.
    """

    target_ratio: float = 0.6
    max_ratio: float = 0.0
    """Above this use the offer shrinks; 0: never."""
    max_oversold_ratio: float = 1.2


def util_capacity_cores(
    supply_cores: float, usage_cores: float, last_cores: float, rules: UtilRules, max_cores: float = 0.0
) -> float:
    """The next capacity; `last_cores` is the one before, `max_cores` its bound (0: none). Without supply 0.

    The step is the supply times the distance to the target while the use is below it, or to the maximum while above.
    The result lies between the supply and its oversold multiple.
    """
    if supply_cores <= 0:
        return 0.0
    used_ratio = usage_cores / supply_cores
    step_cores = 0.0
    if used_ratio < rules.target_ratio:
        step_cores = supply_cores * (rules.target_ratio - used_ratio)
    elif 0 < rules.max_ratio < used_ratio:
        step_cores = supply_cores * (rules.max_ratio - used_ratio)
    # Starts from the last offer: an integral rule, which finds its own level, and therefore needs both bounds.
    cores = min(max(last_cores + step_cores, supply_cores), supply_cores * rules.max_oversold_ratio)
    return min(cores, max_cores) if max_cores > 0 else cores
