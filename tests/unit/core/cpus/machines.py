"""Random machines for the laws of taking CPUs: regular ones, hybrid ones, and ones that nobody would build."""

from hypothesis import strategies as st

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Cpu, Topology, UniformShape


@st.composite
def regular(draw: st.DrawFn, max_threads: int = 2) -> Topology:
    """Every socket, node and core alike, in every numbering."""
    return Topology.uniform(
        UniformShape(
            sockets=draw(st.integers(1, 3)),
            numa_per_socket=draw(st.integers(1, 3)),
            cores_per_numa=draw(st.integers(1, 5)),
            threads=draw(st.integers(1, max_threads)),
            numbering=draw(st.sampled_from(("split", "adjacent", "interleaved"))),
            cores_per_l3=draw(st.none() | st.integers(1, 3)),
        )
    )


@st.composite
def irregular(draw: st.DrawFn) -> Topology:
    """Cores of one to three threads in any NUMA node, socket and L3 group, CPU ids with gaps and in no order.

    A NUMA node may hold several sockets, a socket several nodes, or each a part of the other.
    """
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=10))
    ids = iter(draw(st.permutations(range(sum(sizes) + 5))))
    numa, socket, l3 = st.integers(0, 4), st.integers(0, 3), st.integers(-1, 3)
    rows = []
    for core, threads in enumerate(sizes):
        place = draw(numa), draw(socket), core, draw(l3)
        rows += [Cpu(next(ids), *place) for _ in range(threads)]
    return Topology.of(rows)


@st.composite
def takes(draw: st.DrawFn, machines: st.SearchStrategy[Topology] | None = None) -> tuple[Topology, CpuSet, int]:
    """A machine, what is available of it, and a count that can be met."""
    machine = draw(regular() | irregular() if machines is None else machines)
    gone = draw(st.just(set()) | st.sets(st.sampled_from(list(machine.all))))
    available = machine.all - CpuSet.of(gone)
    return machine, available, draw(st.integers(0, len(available)))
