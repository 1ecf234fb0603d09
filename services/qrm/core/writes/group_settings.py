"""Group settings: what the groups get besides their CPU and memory node sets."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.qrm.core.isolation.rules import NO_ISOLATION, NodeRules
from shared.contracts.advice import PoolAdvice
from shared.core.cgroups.knobs import UNLIMITED


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Weights, limits and page migration, for one pass."""

    asked_millis: int
    """CPU that the tenants requested, which becomes the weight of the top group."""
    memory_limit_bytes: int | None = None
    """Memory limit of the reclaimed class; None leaves it unchanged."""
    quota_millis: int | None = None
    """CPU time that the reclaimed class may use; UNLIMITED takes the bound away, None leaves it."""
    isolation: NodeRules = NO_ISOLATION
    """What groups get besides CPU sets, weights and limits."""
    pod_quotas: bool | None = False
    """Whether reclaimed pods are limited to their CPU limits by quota; None leaves it unchanged."""
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
    """Return whether pods have quotas of their own: not under a quota of their class, which v1 would refuse to set
    below theirs.

    Without fresh advice it is unknown whether the class has a quota.
    """
    if not enabled:
        return False
    return None if advice is None else advice.reclaimed_quota_millis is None
