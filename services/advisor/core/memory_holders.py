"""Who holds memory: what of it counts for each container, and which NUMA nodes are taken whole.

Facts: docs/facts/katalyst-memory.md#canonical-headroom.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from services.advisor.core.machine import SEED_UNKNOWN_BYTES
from services.advisor.core.memory import Resident, estimate_bytes
from shared.contracts.pod import QosClass
from shared.errors import Refused


@dataclass(frozen=True, slots=True)
class Holder:
    """One container as it counts for memory."""

    qos: QosClass
    figures: Resident = field(default_factory=Resident)
    request_bytes: int = 0
    exclusive: bool = False
    """Nobody else may use its NUMA nodes."""
    numas: tuple[int, ...] | None = None
    """NUMA nodes it may use; None: every one."""
    bound_numa: int | None = None
    """The one it is bound to."""
    lends: bool = True
    """Whether what it leaves idle may be lent."""

    @property
    def reclaimed(self) -> bool:
        """Whether it lives on what others lend."""
        return self.qos == "reclaimed_cores"

    @property
    def closed(self) -> bool:
        """Whether it takes its NUMA nodes whole."""
        return self.exclusive and not self.lends and not self.reclaimed

    @property
    def use_bytes(self) -> int | None:
        """What it is measured to use; None where nothing is."""
        known = [figure for figure in self.figures.all if figure is not None]
        return sum(known) if known else None


def open_numas(holders: Iterable[Holder], numas: Collection[int]) -> tuple[int, ...]:
    """NUMA nodes that no container takes whole, ascending."""
    taken: set[int] = set()
    for holder in holders:
        if holder.closed:
            taken.update(numas if holder.numas is None else holder.numas)
    return tuple(sorted(set(numas) - taken))


def reclaimed_requests(holders: Iterable[Holder], numas: Collection[int]) -> dict[int, float]:
    """Requests of reclaimed containers by NUMA node, each split evenly over those it may use."""
    by_numa = dict.fromkeys(sorted(numas), 0.0)
    for holder in holders:
        over = sorted(numas) if holder.numas is None else sorted(set(holder.numas))
        for numa in over if holder.reclaimed else ():
            if numa in by_numa:
                by_numa[numa] += holder.request_bytes / len(over)
    return by_numa


def claimed_bytes(holder: Holder, numa_totals: Mapping[int, int]) -> int:
    """What a container takes from the node: its NUMA nodes, its request where it lends nothing, else its estimate.

    Raises:
        Refused: `missing_metric`, the size of a NUMA node that it takes whole is not known.
    """
    if holder.reclaimed:
        return 0
    if holder.closed:
        over = sorted(numa_totals) if holder.numas is None else sorted(set(holder.numas))
        return sum(_total_bytes(numa, numa_totals) for numa in over)
    if not holder.lends:
        return holder.request_bytes
    return estimate_bytes(holder.qos, holder.figures, 0, SEED_UNKNOWN_BYTES)


def _total_bytes(numa: int, totals: Mapping[int, int]) -> int:
    if numa not in totals:
        raise Refused(f"memory of NUMA node {numa}: its total is not known; read it first", reason="missing_metric")
    return totals[numa]
