"""What each agent gives to best-effort pods: Koordinator's from the kernel and the Node, ours from the bus."""

from collections.abc import Mapping
from typing import Any

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.kube.client import Kube
from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation
from shared.contracts.kube.quantities import parse_units
from shared.contracts.pod import BATCH_ALIASES, BATCH_CPU, BATCH_MEMORY
from shared.core.api_kind import NODES
from shared.core.cgroups.knobs import UNLIMITED, Knob
from shared.core.cgroups.layout import RECLAIM
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Refused, SubletError
from shared.ports import Clock
from shared.wire import Newest
from sublet.migrate.compare.difference import Quantity, Wish

MILLIS = 1000
MAX_AGE_S = 15.0
"""An older message of ours says nothing of this moment."""
LOOK_S = 0.2
NODE_PERIOD_S = 10.0
"""The Node is read so often: their manager writes it once a minute."""
FIRST_NAME = {today: first for first, today in BATCH_ALIASES.items()}
OFFERS: tuple[tuple[Quantity, str], ...] = (("offer_cpu_millis", BATCH_CPU), ("offer_memory_bytes", BATCH_MEMORY))
WOULD_OFFER: tuple[tuple[Quantity, str], ...] = (
    ("offer_cpu_millis", "cpu_millis"),
    ("offer_memory_bytes", "memory_bytes"),
)


class KoordinatorWish:
    """The limits of kubelet's best-effort group, and the batch resources of the Node."""

    def __init__(self, cgroups: Cgroups, group: str, node: "KoordinatorOffer | None") -> None:
        self._cgroups, self._group, self._node = cgroups, group, node

    async def wish(self) -> Wish:
        """See `WishSource`; what cannot be read is left out."""
        cores = best_effort_cores(self._cgroups, self._group)
        offer = await self._node.amounts() if self._node is not None else {}
        return offer if cores is None else {"cpu_cores": cores, **offer}


def best_effort_cores(cgroups: Cgroups, group: str) -> float | None:
    """The CPU that the group may use: its CPUs, and no more than its quota; None where it cannot be read."""
    try:
        cpus, quota = cgroups.effective_cpus(group), cgroups.read(group, Knob.CPU_QUOTA)
        cores = float(len(CpuSet.parse(cpus))) if cpus else None
    except (SubletError, OSError, ValueError):
        return None
    if cores is None or not isinstance(quota, int) or quota == UNLIMITED:
        return cores
    return min(cores, quota / MILLIS)


class KoordinatorOffer:
    """The batch resources of one Node, read now and then."""

    def __init__(self, kube: Kube, node: str, clock: Clock) -> None:
        self._kube, self._path, self._clock = kube, NODES.path(node), clock
        self._read_at_s: float | None = None
        self._amounts: Wish = {}
        self.failure = ""
        """Why it could not be read the last time."""

    async def amounts(self) -> Wish:
        """As last read; empty where it cannot be read."""
        now_s = self._clock.monotonic()
        if self._read_at_s is None or now_s - self._read_at_s >= NODE_PERIOD_S:
            self._read_at_s = now_s
            try:
                self._amounts, self.failure = node_amounts(await self._kube.get(self._path)), ""
            except SubletError as error:
                self._amounts, self.failure = {}, str(error)
        return self._amounts


def node_amounts(node: Mapping[str, Any]) -> Wish:
    """The batch resources of a Node; those that it does not have, or that are no amounts, are left out."""
    status = node.get("status")
    allocatable = status.get("allocatable") if isinstance(status, Mapping) else None
    found: dict[Quantity, float] = {}
    for quantity, name in OFFERS:
        given = allocatable if isinstance(allocatable, Mapping) else {}
        amount = given.get(name, given.get(FIRST_NAME[name]))
        try:
            found[quantity] = float(parse_units(str(amount)))
        except (ValueError, OverflowError):
            continue
    return found


class SubletWish:
    """What qrm and the advisor of an observing node would give."""

    def __init__(self, allocations: Newest[Allocation], advices: Newest[PoolAdvice]) -> None:
        self._allocations, self._advices = allocations, advices

    async def wish(self) -> Wish:
        """See `WishSource`.

        Raises:
            Refused: the node enforces: its limits are its own, and nothing is compared.
        """
        allocation, advice = self._allocations.within(MAX_AGE_S), self._advices.within(MAX_AGE_S)
        if allocation is not None and allocation.mode == "enforce":
            raise Refused(
                f"node {allocation.node}: Sublet enforces there, and both agents write the same; let it observe first "
                "(mode: observe), or take the other agent off the node",
                reason="enforces",
            )
        return would_give(allocation, advice)


def would_give(allocation: Allocation | None, advice: PoolAdvice | None) -> Wish:
    """What both messages come to; what is missing is left out."""
    found: dict[Quantity, float] = {}
    if advice is not None:
        cores = float(advice.size_of(RECLAIM))
        quota = advice.reclaimed_quota_millis
        found["cpu_cores"] = cores if quota is None else min(cores, quota / MILLIS)
    offered = next((why.numbers for why in allocation.why if why.rule == "would-offer"), {}) if allocation else {}
    for quantity, name in WOULD_OFFER:
        amount = offered.get(name)
        if isinstance(amount, int | float):
            found[quantity] = float(amount)
    return found


async def first_words(ours: SubletWish, clock: Clock, patience_s: float) -> bool:
    """Whether our agent says anything within so long."""
    end_s = clock.monotonic() + patience_s
    while not await ours.wish():
        if clock.monotonic() >= end_s:
            return False
        await clock.sleep(LOOK_S)
    return True
