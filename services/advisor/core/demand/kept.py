"""`keeping` makes what some pods asked for and leave idle a part of the demand, whichever policy judged it.

Upstream counts such a pod by its request (docs/facts/service-profiles.md#what-nodes-do-with-descriptors). Here it
counts at least that: one that uses more than it asked for is not given less for being kept.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.advisor.core.model.containers import once, once_beside_cpu
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.policy import Demand
from shared.contracts.envelope import Reason

NAMED_SERVICES = 8
"""Most services named in the reason, to keep advice short on nodes with hundreds of them."""


@dataclass(frozen=True, slots=True)
class KeptIdle:
    """Requested idle CPU and memory of one region that must not be lent, and the services to which it belongs."""

    cores: float = 0.0
    memory_bytes: int = 0
    of_services: tuple[tuple[str, float], ...] = ()
    """By service and why, the cores; ascending."""


NOTHING_KEPT = KeptIdle()


def lends(container: ContainerView) -> bool:
    """Whether what the container leaves idle may be lent."""
    return container.profile is None or not container.profile.kept_for


@once
def kept_of(containers: Sequence[ContainerView]) -> KeptIdle:
    """Return what these containers keep. An unmeasured container counts its request anyway, with every policy."""
    if _lend_all(containers):
        return NOTHING_KEPT
    keeping_ones = [container for container in containers if not lends(container)]
    by_service: dict[str, list[float]] = {}
    for container in keeping_ones:
        if container.profile is not None:
            name = f"{container.profile.service} ({container.profile.kept_for})"
            by_service.setdefault(name, []).append(_idle_cores(container))
    sums = tuple((name, math.fsum(cores)) for name, cores in sorted(by_service.items()))
    return KeptIdle(math.fsum(_idle_cores(one) for one in keeping_ones), sum(map(_idle_bytes, keeping_ones)), sums)


@once_beside_cpu
def _lend_all(containers: Sequence[ContainerView]) -> bool:
    return all(lends(container) for container in containers)


def _idle_cores(container: ContainerView) -> float:
    # A dedicated pod owns its CPUs, and one without CPUs counts its request with every policy.
    if container.qos != "shared_cores" or container.cpu.usage_cores is None:
        return 0.0
    return max(0.0, container.request_cores - container.cpu.usage_cores)


def _idle_bytes(container: ContainerView) -> int:
    known = [figure for figure in container.memory.all if figure is not None]
    return max(0, container.request_bytes - sum(known)) if known else 0


def without_kept(view: View, kept: KeptIdle) -> View:
    """Return the view that the policy judges, without the idle CPU that must not be lent."""
    if view.size_cpus is None or not kept.cores:
        return view
    return replace(view, size_cpus=max(1, view.size_cpus - math.floor(kept.cores)))


def keeping(demand: Demand, kept: KeptIdle) -> Demand:
    """The demand, with what is kept on top. Nothing is kept: the same demand."""
    if not kept.of_services:
        return demand
    why = Reasons(lambda: (*demand.why, _reason(kept)))
    return replace(
        demand,
        cores=demand.cores + kept.cores,
        memory_bytes=demand.memory_bytes + kept.memory_bytes,
        now_cores=None if demand.now_cores is None else demand.now_cores + kept.cores,
        why=why,
    )


def _reason(kept: KeptIdle) -> Reason:
    largest_first = sorted(kept.of_services, key=lambda one: (-one[1], one[0]))
    named = {name: round(cores, 6) for name, cores in largest_first[:NAMED_SERVICES]}
    return Reason(
        rule="service profiles: what these pods asked for and leave idle is not lent",
        numbers={**named, "cores": round(kept.cores, 6), "memory_bytes": kept.memory_bytes,
                 "services": len(kept.of_services)},
    )  # fmt: skip
