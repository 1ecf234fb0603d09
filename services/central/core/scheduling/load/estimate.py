"""`estimate` estimates the use of an unmeasured pod (docs/facts/scheduling.md#load)."""

from collections.abc import Mapping

from services.central.core.scheduling.amounts import Amounts

FACTORS: Mapping[str, int] = {"cpu": 85, "memory": 70}
"""Percent of its amounts that a pod uses in practice."""
_NOTHING_ASKED = {"cpu": 250, "memory": 200 << 20}


def estimate(requests: Amounts, limits: Amounts, factors: Mapping[str, int] = FACTORS) -> dict[str, int]:
    """Return by resource the percentage of the larger of request and limit, at most the limit if there is one."""
    return {name: _of_one(name, requests.get(name, 0), limits.get(name, 0), factors[name]) for name in sorted(factors)}


def _of_one(name: str, request: int, limit: int, factor_percent: int) -> int:
    asked = max(request, limit)
    if not asked:
        return _NOTHING_ASKED.get(name, 0)
    used = (2 * asked * factor_percent + 100) // 200
    return min(used, limit) if limit else used
