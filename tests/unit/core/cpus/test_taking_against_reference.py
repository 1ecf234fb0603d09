"""Every calculator against a slow reading of the same rules over plain lists, on regular, hybrid and odd machines."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from machines import irregular, regular, takes
from slow_taking import (
    TooFew,
    balance,
    by_topology,
    distributed,
    packed,
    packed_cores,
    packed_cpus,
)

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.balanced import take_by_numa_balance
from shared.core.cpus.taking.by_topology import take_by_topology
from shared.core.cpus.topology import Topology
from shared.errors import Refused
from sublet.reference.distributed import take_distributed
from sublet.reference.free_units import free_units
from sublet.reference.packed import take_packed

Take = tuple[Topology, CpuSet, int]
"""A machine, what is available of it, and a count."""

many = settings(max_examples=200)
several_nodes = regular() | irregular()


def rows_of(machine: Topology) -> list[tuple[int, int, int, int, int]]:
    return [(cpu.id, cpu.numa, cpu.socket, cpu.core, cpu.l3) for cpu in machine.cpus]


def outcome(take: Callable[[], CpuSet | list[int]]) -> list[int] | str:
    try:
        return list(take())
    except (Refused, TooFew):
        return "too few"


@many
@given(takes(), st.integers(-1, 2), st.booleans(), st.booleans())
def test_balance_over_numa_nodes(take: Take, more: int, by_core: bool, reverse: bool) -> None:
    machine, available, count = take
    assert outcome(
        lambda: take_by_numa_balance(
            machine, available, count + more, granularity="core" if by_core else "thread", reverse=reverse
        )
    ) == outcome(lambda: balance(rows_of(machine), list(available), count + more, cores_first=by_core, reverse=reverse))


@many
@given(takes(), st.integers(-1, 2), st.booleans())
def test_by_topology(take: Take, more: int, align_l3: bool) -> None:
    machine, available, count = take
    assert outcome(lambda: take_by_topology(machine, available, count + more, align_l3=align_l3)) == outcome(
        lambda: by_topology(rows_of(machine), list(available), count + more, align_l3=align_l3)
    )


@many
@given(takes(), st.integers(-1, 2))
def test_packed(take: Take, more: int) -> None:
    machine, available, count = take
    assert outcome(lambda: take_packed(machine, available, count + more)) == outcome(
        lambda: packed(rows_of(machine), list(available), count + more)
    )


@many
@given(takes(several_nodes), st.integers(-1, 2), st.integers(1, 4))
def test_distributed(take: Take, more: int, group: int) -> None:
    machine, available, count = take
    assert outcome(lambda: take_distributed(machine, available, count + more, group_cpus=group)) == outcome(
        lambda: distributed(rows_of(machine), list(available), count + more, group)
    )


@many
@given(takes())
def test_free_units(take: Take) -> None:
    machine, available, _ = take
    rows, left = rows_of(machine), list(available)
    found = free_units(machine, available)

    def whole(kind: int, unit: int) -> bool:
        return all(row[0] in left for row in rows if row[kind] == unit)

    assert list(found.numas) == [numa for numa in sorted({row[1] for row in rows}) if whole(1, numa)]
    assert list(found.sockets) == [socket for socket in sorted({row[2] for row in rows}) if whole(2, socket)]
    assert list(found.cores_in_order) == [core for core in packed_cores(rows, left) if whole(3, core)]
    assert list(found.cpus_in_order) == packed_cpus(rows, left)
