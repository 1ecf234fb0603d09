"""The plan makes of a group's targets in each domain what it may move in each CCD, its part of the cores with an L3.

Facts: docs/facts/katalyst-bandwidth.md#from-targets-to-lines.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from services.qrm.core.resctrl.flow import ROOT, Flow, outgoing_targets

MB_OF_EIGHTH = 125
"""AMD's unit of bandwidth, an eighth of a GB/s, in MB/s."""
LEAST_CAP_PERCENT = 25


@dataclass(frozen=True, slots=True)
class PlanRules:
    """Bounds of a plan."""

    cross_domain: Collection[str] = ()
    """Groups that use the memory of other domains."""
    remote_limit_mb: int = 15_000
    """More than this of what a domain sends away is not counted."""
    cap_percent: int = 100
    """Lowest setting as a percentage of what is wanted, whatever was measured; never less than 25."""
    least_ccd_mb: int = 4_000
    most_ccd_mb: int = 40_000
    """0: no bound."""
    never_throttled: Collection[str] = ()
    """Besides the root's group."""


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """Traffic of a group since the last setting."""

    flows: Sequence[Flow] = ()
    """By domain; none: not known."""
    previous: Sequence[int] = ()
    """The last settings by domain."""
    ccds: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    """Traffic of each CCD, by domain."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """How a group's targets become bandwidths of CCDs."""

    outgoing: Sequence[int]
    settings: Sequence[int]
    ccds: Mapping[int, int]


def group_plan(group: str, targets: Sequence[int], seen: GroupSeen, rules: PlanRules) -> GroupPlan:
    """Return what a group may move in each CCD.

    Raises:
        Refused: the flow between domains cannot be inverted (`singular_flow`).
    """
    outgoing = list(targets)
    if group in rules.cross_domain:
        flows = seen.flows or [Flow(0, 0)] * len(targets)
        outgoing = outgoing_targets(targets, flows, rules.remote_limit_mb)
    settings = settings_for(outgoing, seen, max(LEAST_CAP_PERCENT, rules.cap_percent))
    free = group == ROOT or group in rules.never_throttled
    ccds: dict[int, int] = {}
    for domain, setting in enumerate(settings):
        used = seen.ccds.get(domain, {})
        ccds |= (
            dict.fromkeys(used, rules.most_ccd_mb) if free and rules.most_ccd_mb else ccd_shares(setting, used, rules)
        )
    return GroupPlan(outgoing, settings, ccds)


def settings_for(wanted: Sequence[int], seen: GroupSeen, cap_percent: int) -> list[int]:
    """The settings by domain that should come to what is wanted, by what the last ones came to."""
    totals = [flow.total_mb for flow in seen.flows]
    if len(seen.previous) != len(wanted) or len(totals) != len(wanted):
        return list(wanted)
    return [
        max(before * want // total if before and total else want, want * cap_percent // 100)
        for want, before, total in zip(wanted, seen.previous, totals, strict=True)
    ]


def ccd_shares(setting: int, used: Mapping[int, int], rules: PlanRules) -> dict[int, int]:
    """Divide a domain's setting among its CCDs by the logarithm of their use, each within its bounds."""
    logs = {ccd: max(0, use.bit_length() - 1) for ccd, use in used.items()}
    whole = sum(logs.values())
    return {
        ccd: within(setting * log // whole if whole else 0, rules.least_ccd_mb, rules.most_ccd_mb)
        for ccd, log in logs.items()
    }


def within(value: int, least: int, most: int) -> int:
    """Return a value not above the most, if there is one, and not below the least."""
    return max(least, min(value, most) if most else value)


def eighths(plan: Mapping[int, int]) -> dict[int, int]:
    """A plan in AMD's unit, rounded up, by CCD."""
    return {ccd: -(-mb // MB_OF_EIGHTH) for ccd, mb in sorted(plan.items())}
