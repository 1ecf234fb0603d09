"""Allocation: which CPUs and memory nodes every pool and pod has now, as read back from the kernel."""

from typing import ClassVar, Literal

from pydantic import StrictBool

from shared.contracts.envelope import Amount, Bytes, Count, CpuList, Message, MessagePart, Millis, Reason
from shared.contracts.ids import ObjectName, PodUid
from shared.contracts.mode import Mode


class PoolAllocation(MessagePart):
    """One pool: CPUs and memory nodes in force."""

    pool: str
    cpus: CpuList
    mems: CpuList = ""
    memory_limit_bytes: Bytes | None = None


class PodAllocation(MessagePart):
    """One pod: the pool it runs in and the CPUs in force for it."""

    uid: PodUid
    namespace: ObjectName
    name: ObjectName
    pool: str
    cpus: CpuList
    mems: CpuList = ""


class NumaOffer(MessagePart):
    """The part of the offer to reclaimed pods that lies on one NUMA node."""

    numa: Count
    reclaimed_cpu_millis: Millis


class Condition(MessagePart):
    """Something an operator should know, boring and stable: type, since when it holds, and in words."""

    type: str
    message: str


class Allocation(Message):
    """Full state of what is applied: never what is wished."""

    kind: ClassVar[str] = "alloc"

    status: Literal["applied", "partial", "failed", "held", "floor", "dry-run"]
    """held: no fresh advice, last sets kept; floor: the lease ended and reclaimed limits fell to the safe floor."""
    mode: Mode = "enforce"
    pools: tuple[PoolAllocation, ...] = ()
    pods: tuple[PodAllocation, ...] = ()
    reclaimed_cpu_millis: Millis = 0
    reclaimed_memory_bytes: Bytes = 0
    reclaimed_numas: tuple[NumaOffer, ...] | None = None
    """The CPU offer by NUMA node, ascending: the parts add up to it. Absent where it is not known; memory is offered
    for the whole node only."""
    lease_left_s: Amount = 0.0
    applied_in_s: Amount = 0.0
    """From the receipt of the advice to the last read-back."""
    idle_class: StrictBool | None = None
    """Whether the kernel has an idle class (`cpu.idle`) for reclaimed pods, so that tenants may share their CPUs; None:
    not known."""
    conditions: tuple[Condition, ...] = ()
    why: tuple[Reason, ...] = ()

    def pool(self, name: str) -> PoolAllocation | None:
        """One pool's allocation."""
        return next((p for p in self.pools if p.pool == name), None)
