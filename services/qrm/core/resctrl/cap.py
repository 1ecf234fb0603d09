"""The cap of a group moves with what its busiest CCD is seen to take, until that is the target.

Facts: docs/facts/katalyst-bandwidth.md#caps.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from services.qrm.core.resctrl.plan import within

KP = 0.1


@dataclass(frozen=True, slots=True)
class CapRules:
    """Where a cap is to lead, and its bounds, in MB/s of a CCD."""

    target_mb: int
    kp: float = KP
    """Part of the distance that one step goes."""
    least_ccd_mb: int = 4_000
    most_ccd_mb: int = 40_000
    """0: no bound."""


def next_cap(cap_mb: int, max_observed_mb: int, rules: CapRules) -> int:
    """Return the cap after one more observation; no observation leaves it unchanged."""
    if not max_observed_mb:
        return cap_mb
    step = int(rules.kp * (rules.target_mb - max_observed_mb))
    return within(cap_mb + step, rules.least_ccd_mb, rules.most_ccd_mb)


def capped(plan: Mapping[int, int], cap_mb: int, least_ccd_mb: int) -> dict[int, int]:
    """A plan within the cap."""
    return {ccd: within(mb, least_ccd_mb, cap_mb) for ccd, mb in plan.items()}
