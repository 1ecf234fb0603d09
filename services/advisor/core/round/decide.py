"""`decide` makes one round: a policy's demand, the machine's bounds and the last round in, a whole advice out."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from services.advisor.core.demand.kept import keeping, kept_of, without_kept
from services.advisor.core.demand.want import wanting
from services.advisor.core.model.figures import NodeMemory
from services.advisor.core.model.machine import Bounds, reserved_memory_bytes
from services.advisor.core.model.ramp import MAX_RAMP_DOWN_WAIT_S, Ramp, RampPace, followed_at_once
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.region import Region
from services.advisor.core.model.shape import Footprint, Shape
from services.advisor.core.model.view import View
from services.advisor.core.policy import Demand
from services.advisor.core.round.explain import NAMED_REGIONS, class_sizes, named, pod_sizes, region_reasons
from services.advisor.core.round.guard import ConfiguredPolicy, judged, worded
from services.advisor.core.round.memory import MemoryAdvice, memory_advice, memory_reason
from services.advisor.core.sizing.driver import SizedRegions, SizingInput, size_regions
from services.advisor.core.sizing.isolation import Isolation, IsolationRules
from services.advisor.core.sizing.node_shape import shape_of
from services.advisor.core.sizing.pools import (
    MILLIS,
    PoolSizes,
    SharedNeed,
    disjoint_sizes,
    overlapping_sizes,
    shared_sizes,
)
from services.advisor.core.sizing.provision import Need, Provision, Regulation
from services.advisor.core.sizing.region_views import region_views
from shared.contracts.advice import PoolSize
from shared.contracts.envelope import Reason
from shared.core.cgroups.layout import SHARE
from shared.core.copies import copier
from shared.errors import Refused


@dataclass(frozen=True, slots=True)
class SizingRules:
    """What applies to every policy: how fast tenants' CPUs may be taken, and how much memory is never offered."""

    pace: RampPace = field(default_factory=lambda: RampPace(max_down_wait_s=MAX_RAMP_DOWN_WAIT_S))
    reserved_bytes: int | None = None
    """None: the machine's own share."""
    isolation: IsolationRules | None = None
    """When noisy pods get CPUs of their own; None: never."""
    fallback: ConfiguredPolicy | None = None
    """Decides where the policy fails; None: the failure is raised."""
    instead: str = ""
    """Why it is not the chosen policy that decides."""
    says_why: bool = True
    """Whether somebody reads the reasons: a policy's are then made within its own part of the round, where what fails
    is its failure."""


@dataclass(frozen=True, slots=True)
class Round:
    """The decision of one round, and everything that the next one needs to know about it."""

    sizes: PoolSizes
    demand: Demand
    """Of all tenants together."""
    reclaimed_memory_bytes: int
    memory_limit_bytes: int | None
    why: Sequence[Reason]
    policy: str
    policy_state: Any
    """The policy's state for the share pool; `region_states` holds those of the other regions, by name."""
    region_states: Mapping[str, Any] = field(default_factory=dict)
    provision: Provision | None = None
    """Sizes by region; None where the pools overlap."""
    isolation: Isolation = field(default_factory=Isolation)
    own_pools: tuple[PoolSize, ...] = ()
    """Sizes of the pools of single pods."""
    failed: str = ""
    """Why the policy was passed over in this round."""

    @property
    def states(self) -> dict[str, Any]:
        """Return the policy's states by region."""
        return {SHARE: self.policy_state, **self.region_states}

    @property
    def quota_millis(self) -> int | None:
        """CPU time that reclaimed pods may use together; None: no such limit."""
        cores = self.demand.reclaim_quota_cores
        return None if cores is None else math.floor(round(cores * MILLIS, 3))  # 1.1 cores are 1100 millis

    @property
    def offered_millis(self) -> int:
        """Return what reclaimed pods may request."""
        offer, quota = self.sizes.reclaimed_cpu_millis, self.quota_millis
        return offer if quota is None else min(offer, quota)

    def fields(self) -> dict[str, Any]:
        """The fields of the advice that follow from the decision."""
        sizes = self.sizes
        return {
            "policy": self.policy,
            "pools": (*class_sizes(sizes), *self.own_pools),
            "overlap": sizes.overlap,
            "reclaimed_cpu_millis": self.offered_millis,
            "reclaimed_memory_bytes": self.reclaimed_memory_bytes,
            "reclaimed_memory_limit_bytes": self.memory_limit_bytes,
            "reclaimed_quota_millis": self.quota_millis,
            "oversold_ratio": sizes.oversold_ratio,
            "required_cores": self.demand.cores,
            "why": tuple(self.why),
        }


def decide(view: View, now_s: float, chosen: ConfiguredPolicy, rules: SizingRules, last: Round | None) -> Round:
    """Return the next round. `last` is the previous round on the same machine, None in the first.

    For a stale view the tenants keep at least what they have, and the offer of memory does not rise.

    Raises:
        Refused: the policy failed and has no fallback, or the fallback failed as well.
    """
    try:
        return _RoundBuilder(view, now_s, chosen, rules, last).round()
    except Refused as refusal:
        other = rules.fallback
        # The same policy on the same view would fail the same way.
        if other is None or other.policy.name == chosen.policy.name:
            raise
        rules = replace(rules, instead=str(refusal))
        # Built from the beginning: half a round of the policy that failed must not be in it.
        done = _RoundBuilder(view, now_s, other, rules, last).round()
        return replace(done, failed=str(refusal))


NOTHING_BEFORE, NO_MEMORY_BEFORE = SizedRegions(), MemoryAdvice()
_with_reserve = copier(View, "region_reserve_cores")


@lru_cache(maxsize=64)
def _without_reserve(bounds: Bounds) -> Bounds:
    return replace(bounds, reserve_cores=0.0)


@dataclass(slots=True)
class _RoundBuilder:
    """Builds one round. A policy may be asked twice in it: again without isolated pods, where these do not fit."""

    view: View
    now_s: float
    chosen: ConfiguredPolicy
    rules: SizingRules
    last: Round | None
    ramps: Mapping[str, Ramp] = field(default_factory=dict)
    """Of the last round, by region; empty where pools overlap."""
    states: dict[str, Any] = field(default_factory=dict)
    demands: dict[str, Demand] = field(default_factory=dict)
    dedicated: set[str] = field(default_factory=set)

    def round(self) -> Round:
        if not self.view.bounds.disjoint:
            return self._overlapping()
        shape, fresh = shape_of(self.view), self.view.fresh
        node = SizingInput(shape, self.view.containers, self.rules.pace, self.rules.isolation, may_shrink=fresh)
        before = self._before()
        self.ramps = before.provision.ramps
        sized = size_regions(node, lambda pods: self._needs(shape, pods), before, self.now_s)
        ramp = self.ramps.get(SHARE)
        sizes = disjoint_sizes(self._bounds(self.demands[SHARE]), sized.provision, ramp, may_shrink=fresh)
        return self._round(sizes, sized.provision, sized.isolation)

    def _overlapping(self) -> Round:
        """Too few CPUs for regions, or all of them shared: the tenants are judged as one."""
        view, policy = self.view, self.chosen.policy
        if policy.reserve == "own":
            view = _with_reserve(view, view.bounds.reserve_cores)
        demand = self._judged(view, SHARE)
        ramps = {SHARE: self.last.sizes.ramp} if self.last else {}
        pace = self._own_pace(demand) or self.rules.pace
        regulation = Regulation(pace, ramps, self.now_s, may_shrink=self.view.fresh)
        bounds = self._bounds(demand)
        now_cores = None if demand.common else demand.now_cores
        needed = SharedNeed(demand.cores, now_cores, demand.most_offered_ratio)
        mean_left = self.last.sizes.mean_left if self.last else None
        sizes_of = shared_sizes if view.bounds.shares_cpus else overlapping_sizes
        return self._round(sizes_of(bounds, regulation, needed, mean_left), None, Isolation())

    def _adds_reserve(self, demand: Demand) -> bool:
        return demand.common or self.chosen.policy.reserve == "common"

    def _bounds(self, demand: Demand) -> Bounds:
        """The machine's bounds, with the reserve that is added to this demand."""
        bounds = self.view.bounds
        return bounds if self._adds_reserve(demand) else _without_reserve(bounds)

    def _own_pace(self, demand: Demand) -> RampPace | None:
        """Return the pace of this demand; None if the common pace applies."""
        common = demand.common or self.chosen.policy.pace == "common"
        return None if common else followed_at_once(self.rules.pace)

    def _need(self, region: Region, footprint: Footprint, demand: Demand, size_cpus: int | None) -> Need:
        added = footprint if self._adds_reserve(demand) else Footprint(footprint.numas, 0.0)
        return Need(region, added, demand.cores, size_cpus, pace=self._own_pace(demand))

    def _needs(self, shape: Shape, isolated: Collection[str]) -> Sequence[Need]:
        """Return the needs of regions without CPUs yet: dedicated pods have theirs, and only their memory counts."""
        # Asked a second time, without isolated pods, only the second answer counts.
        self.states, self.demands, self.dedicated = {}, {}, set()
        needs = []
        for region, footprint, view in region_views(self.view, isolated, shape, self.ramps):
            demand = self._judged(view, region.name)
            if region.type == "dedicated":
                self.dedicated.add(region.name)
            else:
                needs.append(self._need(region, footprint, demand, view.size_cpus))
        return needs

    def _before(self) -> SizedRegions:
        """Return what the last round left; empty if there was none, or its pools overlapped."""
        if self.last is None or self.last.provision is None:
            return NOTHING_BEFORE
        return SizedRegions(self.last.isolation, self.last.provision)

    def _judged(self, view: View, region: str) -> Demand:
        """Return the policy's demand for one region. Its state continues from the last round if the policy is the
        same."""
        last, policy, state = self.last, self.chosen.policy, None
        # A state of another policy is of another type.
        if last is not None and last.policy == policy.name:
            state = last.policy_state if region == SHARE else last.region_states.get(region)
        if state is None:
            state = self.chosen.learned.get(region)
        kept = kept_of(view.containers)
        seen = without_kept(view, kept)
        self.states[region], demand = judged(policy, state, seen, self.now_s, self.chosen.settings)
        if self.rules.says_why:
            demand = worded(policy, demand)
        self.demands[region] = keeping(wanting(demand, view), kept)
        return self.demands[region]

    def _round(self, sizes: PoolSizes, provision: Provision | None, isolation: Isolation) -> Round:
        view, demand, last = self.view, self._demand(), self.last
        reserved = reserved_bytes(view.memory, self.rules)
        before = MemoryAdvice(last.reclaimed_memory_bytes, last.memory_limit_bytes) if last else NO_MEMORY_BEFORE
        memory = memory_advice(view, demand.memory_bytes, reserved, before)
        ramps, instead, policy = self.ramps, self.rules.instead, self.chosen.policy.name

        # Store only the terms: storing the previous round as well would keep all earlier rounds alive.
        def said() -> Iterator[Reason]:
            if instead:
                yield Reason(rule=f"{instead}; {policy} decides")
            yield from (*demand.why, *sizes.why, memory_reason(view, demand.memory_bytes, reserved, memory))
            if provision:
                yield from region_reasons(provision, ramps)

        states = dict(self.states)
        return Round(
            sizes=sizes,
            demand=demand,
            reclaimed_memory_bytes=memory.offered_bytes,
            memory_limit_bytes=memory.limit_bytes,
            why=Reasons(said),
            policy=policy,
            policy_state=states.pop(SHARE),
            region_states=states,
            provision=provision,
            isolation=isolation,
            own_pools=pod_sizes(provision, view) if provision else (),
        )

    def _demand(self) -> Demand:
        """Return all regions' demands as one; without the cores of dedicated pods, which have their CPUs."""
        share = self.demands[SHARE]
        if len(self.demands) == 1:
            return share
        others = [(name, demand) for name, demand in self.demands.items() if name not in (SHARE, *self.dedicated)]
        quotas = [one.reclaim_quota_cores for one in self.demands.values() if one.reclaim_quota_cores is not None]
        return Demand(
            cores=math.fsum(one.cores for name, one in self.demands.items() if name not in self.dedicated),
            memory_bytes=sum(one.memory_bytes for one in self.demands.values()),
            why=(*share.why, *(named(reason, name) for name, one in others[:NAMED_REGIONS] for reason in one.why)),
            # The strictest: a quota is of all reclaimed pods together, whichever region asked for it.
            reclaim_quota_cores=min(quotas, default=None),
            common=share.common,
            may_share=share.may_share,
        )


def reserved_bytes(node: NodeMemory, rules: SizingRules) -> int:
    """Return the memory that is never offered: as the rules say, otherwise the machine's own share."""
    return reserved_memory_bytes(node.total_bytes or 0) if rules.reserved_bytes is None else rules.reserved_bytes
