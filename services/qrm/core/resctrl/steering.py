"""Steering bounds the memory bandwidth of throttled classes, second by second, by what all groups are seen to move.

A domain in which any group's counter is silent keeps what is set there; after a while its throttled classes get the
least. Facts: docs/facts/katalyst-bandwidth.md.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from services.qrm.core.resctrl.cap import CapRules, capped, next_cap
from services.qrm.core.resctrl.flow import ROOT, Flow
from services.qrm.core.resctrl.hardware import BandwidthHardware
from services.qrm.core.resctrl.plan import GroupPlan, GroupSeen, PlanRules, eighths, group_plan
from services.qrm.core.resctrl.quotas import QuotaRules, domain_quotas
from services.qrm.core.resctrl.rates import CounterReading, rates
from shared.contracts.pod import QosClass
from shared.core.cpus.topology import Topology
from shared.errors import Refused

GROUP_OF: Mapping[QosClass, str] = {
    "dedicated_cores": "dedicated",
    "shared_cores": "share",
    "reclaimed_cores": "reclaim",
}
"""The name by which a class has its weight."""
GROUPS = (ROOT, *GROUP_OF.values())
WHOLE_PERCENT = 100


@dataclass(frozen=True, slots=True)
class SteeringRules:
    """Whose bandwidth is bounded, how often, and by which rules."""

    quota: QuotaRules
    plan: PlanRules
    throttled: Collection[str]
    caps: Mapping[str, CapRules] = field(default_factory=dict)
    hold_s: float = 10.0
    """How long a setting stays while a counter of its domain is silent."""


@dataclass(frozen=True, slots=True)
class SteeringState:
    """What one pass leaves to the next."""

    reading: CounterReading | None = None
    settings: Mapping[str, Sequence[int]] = field(default_factory=dict)
    caps: Mapping[str, int] = field(default_factory=dict)
    known_s: Mapping[int, float] = field(default_factory=dict)
    """When every counter of a domain was known last."""


@dataclass(frozen=True, slots=True)
class SteeringPass:
    """What must be set, in MB/s by group and L3 cache, and whose counters are silent."""

    state: SteeringState
    plan: Mapping[str, Mapping[int, int]]
    silent: Sequence[str]


def memory_domains(topology: Topology) -> dict[int, int]:
    """The memory domain of each L3 cache: its NUMA node, or the first of several; from 0 on without a gap."""
    numas: dict[int, int] = {}
    for cpu in topology.cpus:
        if cpu.l3 >= 0:
            numas[cpu.l3] = min(cpu.numa, numas.get(cpu.l3, cpu.numa))
    places = {numa: place for place, numa in enumerate(sorted(set(numas.values())))}
    return {l3: places[numa] for l3, numa in sorted(numas.items())}


def steer(state: SteeringState, now: CounterReading, domains: Mapping[int, int], rules: SteeringRules) -> SteeringPass:
    """One pass."""
    groups = [group for group in GROUPS if group in now.counters]
    flows = rates(state.reading, now, groups)
    unknown = {domain for l3, domain in domains.items() if any(l3 not in flows[group] for group in groups)}
    known_s = {one: now.at_s if one not in unknown else state.known_s.get(one, now.at_s) for one in domains.values()}
    stale = {one for one in unknown if now.at_s - known_s[one] >= rules.hold_s}
    quotas = _quotas({group: _by_domain(flows[group], domains) for group in groups}, unknown, rules)
    settings, caps, plan = dict(state.settings), dict(state.caps), {}
    for group in (one for one in groups if one in rules.throttled):
        targets = [quotas[one][group] if one in quotas else rules.quota.capacity_mb for one in sorted(known_s)]
        moved = _by_domain(flows[group], domains)
        # What a group left unused of its setting says nothing of what the setting comes to, and would raise it without
        # end: a setting is only ever corrected downward, from what was wanted.
        before = [min(one, flow.total_mb) for one, flow in zip(state.settings.get(group, ()), moved, strict=False)]
        seen = GroupSeen(moved, before, _ccds(flows[group], domains))
        found = _plan(group, targets, seen, rules.plan, apart=bool(unknown))
        settings[group] = found.settings
        plan[group] = {l3: mb for l3, mb in found.ccds.items() if domains[l3] not in unknown}
        if (cap := rules.caps.get(group)) is not None:
            busiest = max((flow.total_mb for flow in flows[group].values()), default=0)
            caps[group] = next_cap(caps.get(group, cap.most_ccd_mb or rules.quota.capacity_mb), busiest, cap)
            plan[group] = capped(plan[group], caps[group], cap.least_ccd_mb)
        plan[group] |= {l3: rules.plan.least_ccd_mb for l3, one in domains.items() if one in stale}
    silent = [f"L3 {l3} of {group}" for group in groups for l3 in domains if l3 not in now.counters[group]]
    return SteeringPass(SteeringState(now, settings, caps, known_s), plan, silent)


def in_units(
    plan: Mapping[int, int], domains: Mapping[int, int], hardware: BandwidthHardware, capacity_mb: int
) -> dict[int, int]:
    """A plan in the hardware's unit: eighths of GB/s, or percent of what a domain gives each of its L3 caches."""
    if hardware.vendor == "amd":
        values = eighths(plan)
    else:
        beside = {one: list(domains.values()).count(one) for one in domains.values()}
        values = {l3: min(WHOLE_PERCENT, -(-WHOLE_PERCENT * mb * beside[domains[l3]] // capacity_mb))
                  for l3, mb in sorted(plan.items())}  # fmt: skip
    return {l3: max(value, hardware.least) for l3, value in values.items() if l3 in hardware.domains}


def _quotas(
    seen: Mapping[str, Sequence[Flow]], unknown: Collection[int], rules: SteeringRules
) -> dict[int, Mapping[str, int]]:
    """Return what each group may take of the memory of each known domain."""
    known = {place for flows in seen.values() for place in range(len(flows))} - set(unknown)
    return {one: domain_quotas(_arriving(seen, one, rules.plan.cross_domain), rules.quota).quotas for one in known}


def _plan(group: str, targets: Sequence[int], seen: GroupSeen, rules: PlanRules, *, apart: bool) -> GroupPlan:
    own = replace(rules, cross_domain=())
    if apart:
        return group_plan(group, targets, seen, own)
    try:
        return group_plan(group, targets, seen, rules)
    except Refused:
        # As much goes away as stays: then each domain's cores get what its memory may give.
        return group_plan(group, targets, seen, own)


def _by_domain(flows: Mapping[int, Flow], domains: Mapping[int, int]) -> list[Flow]:
    found = [Flow(0, 0)] * len(set(domains.values()))
    for l3, flow in flows.items():
        if l3 in domains:
            there = found[domains[l3]]
            found[domains[l3]] = Flow(there.local_mb + flow.local_mb, there.remote_mb + flow.remote_mb)
    return found


def _ccds(flows: Mapping[int, Flow], domains: Mapping[int, int]) -> dict[int, dict[int, int]]:
    found: dict[int, dict[int, int]] = {}
    for l3, flow in flows.items():
        if l3 in domains:
            found.setdefault(domains[l3], {})[l3] = flow.total_mb
    return found


def _arriving(seen: Mapping[str, Sequence[Flow]], domain: int, cross_domain: Iterable[str]) -> dict[str, int]:
    """Return the traffic that arrives at a domain's memory by group; remote traffic spreads evenly over the other
    domains."""
    found = {}
    for group, flows in seen.items():
        own = flows[domain]
        others = [flow for place, flow in enumerate(flows) if place != domain]
        if group in cross_domain and others:
            found[group] = own.local_mb + sum(flow.remote_mb for flow in others) // len(others)
        else:
            found[group] = own.total_mb
    return found
