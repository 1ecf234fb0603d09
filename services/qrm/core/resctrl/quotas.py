"""Quotas share the memory bandwidth of one domain out: who weighs more goes first, and something is kept free.

Facts: docs/facts/katalyst-bandwidth.md#quotas-of-a-domain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from services.qrm.core.resctrl.flow import ROOT

DomainState = Literal["stressful", "fit", "abundant"]
WEIGHTS: Mapping[str, int] = {ROOT: 10_000, "dedicated": 9_000, "system": 8_000, "share": 1_000, "reclaim": 100}
OTHERS_WEIGHT, PLAIN_SHARE = 5_000, 50
STRESSED_PERCENT, AMPLE_PERCENT = 5, 20


@dataclass(frozen=True, slots=True)
class QuotaRules:
    """Capacity of a domain, and the precedence of groups."""

    capacity_mb: int
    capacity_percent: Mapping[str, int] = field(default_factory=dict)
    """How much of it a domain has while a group is active there; 1 to 99, others are passed over."""
    active_mb: int = 1_000
    """From so much on a group is active."""
    weights: Mapping[str, int] = field(default_factory=dict)
    """Weights of major names in addition to the built-in ones, or in their place."""


@dataclass(frozen=True, slots=True)
class DomainQuotas:
    """What each group may take, and how it was derived."""

    capacity_mb: int
    order: Sequence[Sequence[str]]
    """Groups of equal weight, highest first."""
    limits: Mapping[str, int]
    """What the higher groups leave."""
    free_mb: int
    state: DomainState
    quotas: Mapping[str, int]


def weight(group: str, weights: Mapping[str, int]) -> int:
    """Return the precedence of a group, by the part of its name before the first dash."""
    name = f"share-{group.removeprefix('shared-')}" if group.startswith("shared-") else group
    major, *rest = name.split("-")
    base = {**WEIGHTS, **weights}.get(major)
    if base is None:
        return OTHERS_WEIGHT
    if major != "share":
        return base
    number = rest[-1] if rest else str(PLAIN_SHARE)
    return base + (int(number) if number.isascii() and number.isdigit() else 0)


def domain_quotas(used_mb: Mapping[str, int], rules: QuotaRules) -> DomainQuotas:
    """Divide a domain among the groups that use it."""
    percents = {
        group: rules.capacity_percent.get(group, 0) for group, used in used_mb.items() if used >= rules.active_mb
    }
    bounds = (rules.capacity_mb * percent // 100 for percent in percents.values() if 0 < percent < 100)
    capacity = min((rules.capacity_mb, *bounds))
    ranked = sorted(used_mb, key=lambda group: (-weight(group, rules.weights), group))
    order = [tuple(equals) for _, equals in groupby(ranked, key=lambda group: weight(group, rules.weights))]
    limits: dict[str, int] = {}
    left = capacity
    for equals in order:
        limits |= dict.fromkeys(equals, left)
        left = max(0, left - sum(used_mb[group] for group in equals))
    state = _state(capacity, left)
    reserve = {"stressful": STRESSED_PERCENT, "abundant": AMPLE_PERCENT}.get(state, 0)
    return DomainQuotas(
        capacity, order, limits, left, state, _reserved(order, limits, capacity * reserve // 100 - left)
    )


def _state(capacity: int, free: int) -> DomainState:
    if free < capacity * STRESSED_PERCENT // 100:
        return "stressful"
    return "abundant" if free > capacity * AMPLE_PERCENT // 100 else "fit"


def _reserved(order: Sequence[Sequence[str]], limits: Mapping[str, int], needed: int) -> dict[str, int]:
    """Return the limits minus what must stay free, which is taken from the lowest group upward."""
    quotas: dict[str, int] = {}
    for equals in reversed(order):
        limit = limits[equals[0]]
        taken = min(limit, max(0, needed))
        quotas |= dict.fromkeys(equals, limit - taken)
        needed -= taken
    return {group: quotas[group] for group in limits}
