"""Calculators share these: units as bit masks, their order, and the count that is still needed.

A unit is a socket, a NUMA node, an L3 group, a core or a single CPU. It is free when every CPU of its own is available,
so that machines whose cores differ (two threads here, one there, a sibling offline) are served right: sizes are those
of the unit itself, never an average (docs/facts/katalyst-cpu.md#free-units).
"""

from collections.abc import Iterable, Mapping

from shared.core.cpus.cpuset import CpuSet
from shared.errors import Refused

NOT_ENOUGH_CPUS = "not_enough_cpus"

Unit = tuple[int, int]
"""Id and bit mask of all its CPUs, available or not."""


def units_of(groups: Mapping[int, CpuSet]) -> list[Unit]:
    """The units of a grouping of the topology, ascending by id."""
    return [(name, cpus.mask) for name, cpus in groups.items()]


def by_available(units: Iterable[Unit], available: int) -> list[Unit]:
    """The units that have any CPU available: those with the fewest first, the lower id first among equals."""
    counted = [((mask & available).bit_count(), name, mask) for name, mask in units if mask & available]
    counted.sort()
    return [(name, mask) for _, name, mask in counted]


def free(units: Iterable[Unit], available: int) -> list[Unit]:
    """The units all of whose CPUs are available, in the order given."""
    return [unit for unit in units if unit[1] & available == unit[1]]


class Taking:
    """One request on its way: CPUs taken so far, how many are still needed, and what is left to take from."""

    __slots__ = ("left", "need", "taken")

    def __init__(self, available: CpuSet, count: int) -> None:
        """Begin with nothing taken; a count below 1 needs nothing.

        Raises:
            Refused: `not_enough_cpus`, fewer CPUs are available than wanted.
        """
        if count > len(available):
            raise Refused(
                f"{count} CPUs wanted, {len(available)} available ({available}); ask for fewer or free some",
                reason=NOT_ENOUGH_CPUS,
            )
        self.left, self.taken, self.need = available.mask, 0, max(0, count)

    def whole(self, units: Iterable[Unit]) -> None:
        """Take each unit, in order, that is not larger than what is still needed. All its CPUs must be left."""
        taken, need = 0, self.need
        for _, mask in units:
            if need < 1:
                break
            # Skip a unit that is too large: a smaller later one may still fit.
            if (size := mask.bit_count()) <= need:
                taken |= mask
                need -= size
        self._book(taken, need)

    def singly(self, units: Iterable[Unit]) -> None:
        """Take CPU by CPU: unit after unit, in each what is left of it, ascending, until nothing more is needed."""
        taken, need = 0, self.need
        for _, mask in units:
            if need < 1:
                break
            part = CpuSet(mask & self.left & ~taken).first(need)
            taken |= part.mask
            need -= len(part)
        self._book(taken, need)

    def _book(self, taken: int, need: int) -> None:
        self.taken |= taken
        self.left &= ~taken
        self.need = need

    @property
    def cpus(self) -> CpuSet:
        """What was taken so far."""
        return CpuSet(self.taken)
