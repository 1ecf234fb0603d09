"""`memory_advice` decides a round's memory: how much reclaimed pods may ask for, and the limit of their cgroup."""

from dataclasses import dataclass

from services.advisor.core.memory.limit import node_limit_bytes
from services.advisor.core.memory.offer import offered_bytes
from services.advisor.core.model.machine import critical_memory_bytes
from services.advisor.core.model.view import View
from shared.contracts.envelope import Reason


@dataclass(frozen=True, slots=True)
class MemoryAdvice:
    """The offer, and the limit; a limit of None leaves the one in force."""

    offered_bytes: int = 0
    limit_bytes: int | None = None


def memory_advice(view: View, tenants_bytes: int, reserved_bytes: int, before: MemoryAdvice) -> MemoryAdvice:
    """The memory of this round. On a view that is not fresh the offer does not rise, and the limit stays."""
    offer = offered_bytes(view.memory, tenants_bytes, reserved_bytes, before.offered_bytes)
    if not view.fresh:
        # Without a limit, which means: leave the one in force.
        return MemoryAdvice(min(offer, before.offered_bytes))
    critical = critical_memory_bytes(view.memory.total_bytes or 0)
    return MemoryAdvice(offer, node_limit_bytes(view.memory, critical, before.limit_bytes))


def memory_reason(view: View, tenants_bytes: int, reserved_bytes: int, made: MemoryAdvice) -> Reason:
    """The rule of the offer, and its numbers."""
    return Reason(
        rule="memory: total - reserve - tenants, at most what is available",
        numbers={
            "total_bytes": view.memory.total_bytes,
            "available_bytes": view.memory.available_bytes,
            "reclaimed_used_bytes": view.memory.reclaimed_used_bytes,
            "reserved_bytes": reserved_bytes,
            "tenants_bytes": tenants_bytes,
            "offered_bytes": made.offered_bytes,
            "limit_bytes": made.limit_bytes,
            "fresh": view.fresh,
        },
    )
