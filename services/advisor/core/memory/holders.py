"""Holders say what of each container's memory counts, and which NUMA nodes are taken whole.

Facts: docs/facts/katalyst-memory.md#canonical-headroom.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from services.advisor.core.model.figures import Resident
from shared.contracts.pod import QosClass


@dataclass(frozen=True, slots=True)
class Holder:
    """One container as it counts for memory."""

    qos: QosClass
    figures: Resident = field(default_factory=Resident)
    request_bytes: int = 0
    exclusive: bool = False
    """No other pod may use its NUMA nodes."""
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
        """Return its measured use; None if nothing is measured."""
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
