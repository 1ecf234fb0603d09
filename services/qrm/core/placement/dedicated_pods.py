"""Dedicated pods get their CPUs and memory nodes, one after another.

A pod keeps its CPUs while they fit. A pod that a scheduler has bound to CPUs gets these if they are free; all others
get what their bind policy selects from the free CPUs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.qrm.core.placement.bind_policy import BindAttempt, attempts, holds, unmet
from services.qrm.core.placement.dedicated import DedicatedRequest, of_dedicated
from services.qrm.core.placement.hints import hints, merge
from services.qrm.core.placement.requests import CpuRequest
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.balanced import NOT_ENOUGH_CPUS
from shared.core.cpus.topology import Topology
from shared.core.pods.cpu_binding import CpuExclusivePolicy
from shared.errors import Refused

DEDICATED = "dedicated"
NOT_WHOLE_CORES = "not_whole_cores"


@dataclass(frozen=True, slots=True)
class Owned:
    """What one pod runs on. `numas` is empty if it is unbound; pods of one `pool` have the same CPUs."""

    pool: str
    cpus: CpuSet
    numas: tuple[int, ...] = ()


@dataclass(slots=True)
class Assigning:
    """One run of the rules. `free` are the unassigned CPUs, `memory` the bytes that no bound pod has requested."""

    topology: Topology
    free: CpuSet
    memory: dict[int, int]
    keep: int
    held: Mapping[str, CpuSet]
    owned: dict[str, Owned] = field(default_factory=dict)
    apart: dict[CpuExclusivePolicy, CpuSet] = field(default_factory=dict)
    """CPUs of the pods that allow no other pod of the same exclusive policy next to them."""

    def inside(self, numa: int) -> CpuSet:
        """Return the free CPUs of a NUMA node."""
        return self.topology.numas[numa] & self.free

    def give(self, request: CpuRequest, own: Owned) -> None:
        """Let a pod have its CPUs and its part of the memory."""
        self.owned[request.uid] = own
        exclusive = request.binding.exclusive
        if exclusive is not None:
            self.apart[exclusive] = self.apart.get(exclusive, CpuSet()) | own.cpus
        # Pods of one pool have the same CPUs: the second time nothing is left to subtract, which is correct.
        self.free -= own.cpus
        for numa in own.numas:
            self.memory[numa] = self.memory.get(numa, 0) - request.memory_bytes // len(own.numas)

    def spare(self, cpus: CpuSet) -> CpuSet:
        """Return the set itself, if enough remains for all others.

        Raises:
            Refused: `not_enough_cpus`.
        """
        # The shared and the reclaimed pool can never be empty, whatever single pods request.
        if len(self.free - cpus) < self.keep:
            raise Refused(
                f"{len(cpus)} CPUs wanted, {len(self.free)} free, of which {self.keep} stay for the other pools",
                reason=NOT_ENOUGH_CPUS,
            )
        return cpus


def serve_dedicated(state: Assigning, requests: Sequence[CpuRequest]) -> dict[str, str]:
    """Give the dedicated pods their CPUs; why some have none."""
    problems: dict[str, str] = {}
    for request in (r for r in requests if r.kind == "dedicated"):
        try:
            state.give(request, _dedicated(state, request))
        except Refused as refusal:
            problems[request.key] = str(refusal)
    return problems


def preferences_unmet(state: Assigning, requests: Sequence[CpuRequest]) -> dict[str, str]:
    """By pod, what its CPUs are not though it prefers them so; asked when all have theirs, for pods come and go."""
    found: dict[str, str] = {}
    for request in (r for r in requests if r.kind == "dedicated" and r.uid in state.owned):
        own = state.owned[request.uid].cpus
        others = {exclusive: cpus - own for exclusive, cpus in state.apart.items()}
        words = unmet(state.topology, own, request.binding, others)
        if words:
            found[request.key] = "; ".join(words)
    return dict(sorted(found.items()))


def _dedicated(state: Assigning, request: CpuRequest) -> Owned:
    """Return CPUs for a dedicated pod: its current ones while they fit, otherwise those it is bound to, otherwise
    the best.

    Raises:
        Refused: no NUMA nodes hold it, too few CPUs would remain, or none are as it requires them.
    """
    # Cut to what is free: CPUs may have gone offline, or been pinned by kubelet, since they were given.
    held = state.held.get(request.uid, CpuSet()) & state.free
    if held and _fits(state, request, held):
        return Owned(DEDICATED, held, _nodes_of(state, held))
    bound = request.bound_cpus
    # Even if it holds others: on cgroup v1 a pod that was not placed yet holds all CPUs.
    if bound and bound <= state.free and _fits(state, request, bound):
        return Owned(DEDICATED, state.spare(bound), _nodes_of(state, bound))
    why = Refused("no CPU is free", reason=NOT_ENOUGH_CPUS)
    for attempt in attempts(state.topology, state.free, request.binding, state.apart):
        try:
            return _taken(state, request, attempt, held)
        except Refused as refusal:
            why = refusal
    if request.binding.required:
        raise Refused(f"requiredCPUBindPolicy {request.binding.policy}: {why}", reason=why.reason)
    raise why


def _taken(state: Assigning, request: CpuRequest, attempt: BindAttempt, held: CpuSet) -> Owned:
    """Return the CPUs of one attempt, including as many of the held ones as possible.

    Raises:
        Refused: no NUMA nodes hold it, too few CPUs would remain, or the CPUs are not as the policy says.
    """
    numas = _nodes(state, request, attempt.free, held)
    inside = attempt.free & CpuSet.union(state.topology.numas[numa] for numa in numas)
    kept = held & inside
    plain = not request.exclusive and not request.evenly and not request.whole_cores
    if plain and attempt.policy is None and 0 < len(kept) < request.cpus:
        more = of_dedicated(state.topology, inside - kept, numas, DedicatedRequest(request.cpus - len(kept)))
        return Owned(DEDICATED, state.spare(kept | more), numas)
    # A pod that asks for less than it has gives some back and moves nowhere.
    within = kept if not request.exclusive and not request.evenly and len(kept) > request.cpus else inside
    wanted = DedicatedRequest(request.request_cores or 1, request.exclusive, request.evenly, request.whole_cores)
    cpus = of_dedicated(state.topology, within, numas, wanted)
    if not holds(state.topology, cpus, attempt.policy):
        raise Refused(
            f"{len(cpus)} CPUs are no whole cores, which have {state.topology.threads_per_core} here; "
            f"request a multiple of {state.topology.threads_per_core}",
            reason=NOT_WHOLE_CORES,
        )
    return Owned(DEDICATED, state.spare(cpus), numas)


def _nodes_of(state: Assigning, cpus: CpuSet) -> tuple[int, ...]:
    return tuple(numa for numa, inside in state.topology.numas.items() if inside & cpus)


def _fits(state: Assigning, request: CpuRequest, cpus: CpuSet) -> bool:
    """Whether these CPUs are still, or already, what a pod asks for."""
    numas = _nodes_of(state, cpus)
    if request.numa_number is not None and len(numas) != request.numa_number:
        return False
    if request.binding.required and not holds(state.topology, cpus, request.binding.policy):
        return False
    if request.exclusive:
        whole = CpuSet.union(state.inside(numa) for numa in numas)
        return cpus == whole and len(cpus) >= request.cpus
    return len(cpus) == request.cpus


def _nodes(state: Assigning, request: CpuRequest, free: CpuSet, held: CpuSet) -> tuple[int, ...]:
    """The NUMA nodes for a pod: those that CPU and memory agree on; where it was before goes first.

    Raises:
        Refused: `not_enough_cpus`, no set of nodes holds it.
    """
    topology = state.topology
    allowed = [n for n in topology.numas if not request.numa_ids or n in request.numa_ids]
    if request.exclusive:
        taken = CpuSet.union(own.cpus for own in state.owned.values())
        allowed = [n for n in allowed if not topology.numas[n] & taken]
    cpus = {n: len(topology.numas[n] & free) for n in allowed if topology.numas[n] & free}
    # A node of unknown memory holds any request: absent is not zero (docs/facts/safety-
    # rules.md#rule-1-absent-is-not-zero).
    memory = {n: max(0, state.memory.get(n, request.memory_bytes)) for n in cpus}
    offers = {
        "cpu": hints(cpus, request.cpus, exactly=request.numa_number),
        "memory": hints(memory, request.memory_bytes, exactly=request.numa_number),
    }
    best = merge(offers, order={n: -len(topology.numas[n] & held) for n in cpus})
    if best is None:
        short = next((name for name, found in offers.items() if not found), "both together")
        raise Refused(
            f"{request.cpus} CPUs and {request.memory_bytes} bytes wanted on NUMA nodes; free CPUs by node {cpus}, "
            f"free bytes {memory}: no set of nodes holds it ({short})",
            reason=NOT_ENOUGH_CPUS,
        )
    return best.numas
