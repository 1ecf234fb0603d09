"""Detects reclaimed pods that get far less CPU than they asked for.

Facts: docs/facts/katalyst-eviction.md#cpu-suppression.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


def supply_cores(pool_cpus: float, busy_cores: float, usage_cores: float, quota_cores: float | None) -> float:
    """CPU time that reclaimed pods can have: what is idle of their pool and what they use, within their quota."""
    supply = max(pool_cpus - busy_cores, 0.0) + usage_cores
    return supply if quota_cores is None else min(supply, quota_cores)


@dataclass(frozen=True, slots=True)
class CpuClaim(Generic[T]):
    """The request of a reclaimed pod, and its tolerance as a factor; None: not declared."""

    key: str
    """Identifies the pod from sample to sample."""
    name: str
    """Orders pods of equal request and priority."""
    priority: int | None
    request_cores: float
    tolerance_ratio: float | None
    of: T
    """The caller's object."""

    @property
    def order(self) -> tuple[float, float, str]:
        """Large requests first, low priority first (none is the lowest), then the name."""
        return -self.request_cores, float("-inf") if self.priority is None else self.priority, self.name


@dataclass(frozen=True, slots=True)
class SuppressedClaim(Generic[T]):
    """A claim that got too little for too long: by how much, and how much the pod tolerates."""

    claim: CpuClaim[T]
    ratio: float
    tolerance_ratio: float


@dataclass(frozen=True, slots=True)
class SuppressionBounds:
    """No pod tolerates more than `max_tolerance_ratio`; none goes before `min_duration_s` have passed."""

    max_tolerance_ratio: float = 5.0
    min_duration_s: float = 300.0


def suppressed(
    since_s: Mapping[str, float], claims: Iterable[CpuClaim[T]], supply: float, t_s: float, bounds: SuppressionBounds
) -> tuple[dict[str, float], list[SuppressedClaim[T]]]:
    """Judge one moment: since when each pod has been suppressed beyond its tolerance, and who goes.

    A pod that goes takes its request with it, so that those after it are judged by what is left.
    """
    order = sorted(claims, key=lambda claim: claim.order)
    asked = sum(claim.request_cores for claim in order)
    after: dict[str, float] = {}
    going = []
    for claim in order:
        tolerance = bounds.max_tolerance_ratio
        if claim.tolerance_ratio is not None:
            tolerance = min(claim.tolerance_ratio, tolerance)
        ratio = _ratio(asked, supply)
        if ratio <= tolerance:
            continue
        after[claim.key] = since_s.get(claim.key, t_s)
        if t_s - after[claim.key] > bounds.min_duration_s:
            going.append(SuppressedClaim(claim, ratio, tolerance))
            asked -= claim.request_cores
    return after, going


def _ratio(asked: float, supply: float) -> float:
    """How many times the supply is asked for."""
    if supply > 0:
        return asked / supply
    return float("inf") if asked > 0 else 0.0
