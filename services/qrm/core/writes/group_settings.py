"""Group settings say what the groups get beside their CPU and memory node sets."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.qrm.core.isolation.rules import NO_ISOLATION, NodeRules
from shared.contracts.advice import PoolAdvice
from shared.core.cgroups.knobs import UNLIMITED


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Weights, limits and the manner of moving, for one pass."""

    asked_millis: int
    """CPU that the tenants asked for, which is what the top group weighs."""
    memory_limit_bytes: int | None = None
    """Memory limit of the reclaimed class; None leaves it as it is."""
    quota_millis: int | None = None
    """CPU time that the reclaimed class may use; UNLIMITED takes the bound away, None leaves it."""
    isolation: NodeRules = NO_ISOLATION
    """What groups get beside CPU sets, weights and limits."""
    pod_quotas: bool | None = False
    """Whether reclaimed pods are held to their CPU limits by quota; None leaves it as it is."""
    raised_quotas: Mapping[str, int] = field(default_factory=dict)
    """Quotas of tenants' containers above their limits, by group, in milli-cores."""
    migrate: bool = False
    """Whether the pages of pods bound to NUMA nodes move with them, which may take long."""


def quota_millis(advice: PoolAdvice | None) -> int | None:
    """The quota that fresh advice sets, or takes away; without fresh advice the last one stays."""
    if advice is None:
        return None
    return UNLIMITED if advice.reclaimed_quota_millis is None else advice.reclaimed_quota_millis


def pod_quotas(advice: PoolAdvice | None, *, enabled: bool) -> bool | None:
    """Whether pods have quotas of their own: not beside one of their class, which v1 would refuse to set below theirs.

    Without fresh advice it is not known whether there is one of the class.
    """
    if not enabled:
        return False
    return None if advice is None else advice.reclaimed_quota_millis is None
