"""One round of the advisor: a policy's demand, the machine's bounds and the last round in, one whole advice out."""

from dataclasses import dataclass, field
from typing import Any

from services.advisor.core.machine import critical_memory_bytes, reserved_memory_bytes
from services.advisor.core.memory import NodeMemory, node_limit_bytes, offered_bytes
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.core.pools import Pace, PoolSizes, pool_sizes
from services.advisor.core.view import View
from shared.contracts.advice import PoolSize
from shared.contracts.envelope import Reason
from shared.core.layout import RECLAIM, RESERVE, SHARE


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every policy: how fast tenants' CPUs may be taken, how much memory is never offered."""

    pace: Pace = field(default_factory=Pace)
    reserved_bytes: int | None = None
    """None: the machine's own share."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round decided, and all that the next one needs to know of it."""

    sizes: PoolSizes
    demand: Demand
    reclaimed_memory_bytes: int
    memory_limit_bytes: int | None
    why: tuple[Reason, ...]
    policy: str
    policy_state: Any

    def fields(self) -> dict[str, Any]:
        """The fields of the advice that follow from the decision."""
        sizes = self.sizes
        pools = {SHARE: sizes.share_cpus, RECLAIM: sizes.reclaim_cpus, RESERVE: sizes.reserve_cpus}
        return {
            "policy": self.policy,
            "pools": tuple(PoolSize(pool=pool, cpus=cpus) for pool, cpus in pools.items()),
            "overlap": sizes.overlap,
            "reclaimed_cpu_millis": sizes.reclaimed_cpu_millis,
            "reclaimed_memory_bytes": self.reclaimed_memory_bytes,
            "reclaimed_memory_limit_bytes": self.memory_limit_bytes,
            "required_cores": self.demand.cores,
            "why": self.why,
        }


def decide(
    view: View, now_s: float, policy: Policy[Any, Any], settings: PolicySettings, rules: Rules, last: Round | None
) -> Round:
    """The next round. `last` is the round before it on the same machine, None in the first.

    On a view that is not fresh the tenants keep at least what they have, and the offer of memory does not rise.
    """
    state = last.policy_state if last and last.policy == policy.name else policy.start()
    state, demand = policy.judge(state, view, now_s, settings)
    ramp = last.sizes.ramp if last else None
    sizes = pool_sizes(view.bounds, rules.pace, ramp, now_s, demand.cores, may_shrink=view.fresh)
    before = last.reclaimed_memory_bytes if last else 0
    reserved = _reserved_bytes(view.memory, rules)
    offer = offered_bytes(view.memory, demand.memory_bytes, reserved, before)
    if not view.fresh:
        offer = min(offer, before)
    limit = node_limit_bytes(view.memory, critical_memory_bytes(view.memory.total_bytes or 0)) if view.fresh else None
    why = (*demand.why, sizes.why, _memory_reason(view, demand, reserved, offer, limit))
    return Round(sizes, demand, offer, limit, why, policy.name, state)


def _reserved_bytes(node: NodeMemory, rules: Rules) -> int:
    return reserved_memory_bytes(node.total_bytes or 0) if rules.reserved_bytes is None else rules.reserved_bytes


def _memory_reason(
    view: View, demand: Demand, reserved_bytes: int, offer_bytes: int, limit_bytes: int | None
) -> Reason:
    return Reason(
        rule="memory: total - reserve - tenants, at most what is available",
        numbers={
            "total_bytes": view.memory.total_bytes,
            "available_bytes": view.memory.available_bytes,
            "reclaimed_used_bytes": view.memory.reclaimed_used_bytes,
            "reserved_bytes": reserved_bytes,
            "tenants_bytes": demand.memory_bytes,
            "offered_bytes": offer_bytes,
            "limit_bytes": limit_bytes,
            "fresh": view.fresh,
        },
    )
