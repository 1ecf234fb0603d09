"""`shared_out` divides an amount of the whole node among its NUMA nodes by weight."""

from collections.abc import Mapping


def shared_out(total: int, weights: Mapping[int, int]) -> dict[int, int]:
    """The amount in whole parts by weight; they add up to it exactly. Empty where no weight is above 0.

    What is left by rounding down goes one by one to the largest remainders, of equal ones to the lower number.
    """
    whole = sum(weights.values())
    if whole <= 0:
        return {}
    parts = {key: total * weight // whole for key, weight in sorted(weights.items())}
    remainders = sorted(parts, key=lambda key: (-(total * weights[key] % whole), key))
    for key in remainders[: total - sum(parts.values())]:
        parts[key] += 1
    return parts
