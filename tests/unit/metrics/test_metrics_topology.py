"""The machine's topology as read from a sysfs tree, whole and with files missing."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_trees import KernelTree, put

from shared.adapters.host.sysfs import (
    isolated_cpus,
    memory_numa_ids,
    numa_ids,
    offline_cpus,
    online_cpus,
    read_topology,
)
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape
from shared.errors import Unavailable, Unfit

CPU, NODE = "sys/devices/system/cpu", "sys/devices/system/node"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """8 CPUs, 2 sockets of one NUMA node, 2 cores each, siblings 4 apart; core ids 0 and 1 in both sockets."""
    KernelTree(tmp_path, 1).machine(cpus=8, numas=2)
    return tmp_path


def groups(topology: Topology) -> tuple[dict[int, str], ...]:
    return tuple(
        {key: str(cpus) for key, cpus in part.items()} for part in (topology.numas, topology.sockets, topology.cores)
    )


WHOLE = (
    {0: "0-1,4-5", 1: "2-3,6-7"},
    {0: "0-1,4-5", 1: "2-3,6-7"},
    {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7"},
)


def remove(root: Path, pattern: str) -> None:
    for path in (root / "sys").rglob(pattern):
        path.unlink()


def test_cores_of_two_sockets_with_the_same_core_id_stay_apart(machine: Path) -> None:
    topology = read_topology(machine)
    assert groups(topology) == WHOLE
    assert {cpu.id: cpu.l3 for cpu in topology.cpus} == {0: 0, 1: 1, 2: 2, 3: 3, 4: 0, 5: 1, 6: 2, 7: 3}


def test_older_kernels_name_the_siblings_otherwise(machine: Path) -> None:
    for file in (machine / "sys").rglob("core_cpus_list"):
        file.rename(file.with_name("thread_siblings_list"))
    assert groups(read_topology(machine)) == WHOLE


def test_without_lists_of_siblings_socket_die_and_core_id_name_the_core(machine: Path) -> None:
    remove(machine, "core_cpus_list")
    assert groups(read_topology(machine)) == WHOLE
    for cpu in (1, 5):  # a second die of socket 0, whose core ids begin at 0 again
        put(machine / f"{CPU}/cpu{cpu}/topology/die_id", "1\n")
        put(machine / f"{CPU}/cpu{cpu}/topology/core_id", "0\n")
    assert groups(read_topology(machine)) == WHOLE


def test_without_any_topology_every_cpu_is_a_core_of_one_socket(machine: Path) -> None:
    for name in ("core_cpus_list", "core_id", "die_id", "physical_package_id", "shared_cpu_list"):
        remove(machine, name)
    numas, sockets, cores = groups(read_topology(machine))
    assert (numas, sockets) == (WHOLE[0], {0: "0-7"})
    assert cores == {cpu: str(cpu) for cpu in range(8)}
    assert {cpu.l3 for cpu in read_topology(machine).cpus} == {-1}


def test_numa_nodes_are_found_by_their_folders_too(machine: Path) -> None:
    (machine / NODE / "online").unlink()
    assert numa_ids(machine) == (0, 1)
    assert groups(read_topology(machine)) == WHOLE


def test_without_numa_there_is_one_node(machine: Path) -> None:
    (machine / NODE).rename(machine / "gone")
    assert numa_ids(machine) == ()
    assert groups(read_topology(machine))[0] == {0: "0-7"}


def test_offline_cpus_are_left_out_of_their_cores(machine: Path) -> None:
    put(machine / f"{CPU}/online", "1-6\n")
    assert groups(read_topology(machine))[2] == {1: "1,5", 2: "2,6", 3: "3", 4: "4"}


def test_offline_cpus_are_those_present_that_do_not_run(machine: Path) -> None:
    put(machine / f"{CPU}/present", "0-7\n")
    put(machine / f"{CPU}/online", "0-4,6\n")
    put(machine / f"{CPU}/offline", "5,7-127\n")  # with the empty sockets
    assert str(offline_cpus(machine)) == "5,7"
    (machine / f"{CPU}/present").unlink()
    assert not offline_cpus(machine)


def test_isolated_cpus_stay_in_the_machine_and_are_marked(machine: Path) -> None:
    assert not isolated_cpus(machine)
    put(machine / f"{CPU}/isolated", "\n")
    assert not read_topology(machine).isolated
    put(machine / f"{CPU}/isolated", "1,5\n")
    topology = read_topology(machine)
    assert groups(topology) == WHOLE
    assert (str(topology.isolated), str(topology.placeable)) == ("1,5", "0,2-4,6-7")


def test_an_isolated_cpu_that_is_offline_is_left_out(machine: Path) -> None:
    put(machine / f"{CPU}/online", "0-6\n")
    put(machine / f"{CPU}/isolated", "6-7\n")
    assert str(read_topology(machine).isolated) == "6"


def test_cores_of_two_threads_beside_cores_of_one(tmp_path: Path) -> None:
    """As Linux numbers a hybrid machine: 0-3 two large cores, 4-7 small ones that share an L2 and repeat no core id."""
    put(tmp_path / f"{CPU}/online", "0-7\n")
    for cpu in range(8):
        here = tmp_path / f"{CPU}/cpu{cpu}"
        put(here / "topology/physical_package_id", "0\n")
        put(here / "topology/core_id", f"{4 * (cpu // 2) if cpu < 4 else 4 + cpu}\n")
        put(here / "topology/core_cpus_list", f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}\n" if cpu < 4 else f"{cpu}\n")
        if cpu < 6:  # the last two have no L3
            put(here / "cache/index3/level", "3\n")
            put(here / "cache/index3/shared_cpu_list", "0-5\n")
    topology = read_topology(tmp_path)
    assert groups(topology)[2] == {0: "0-1", 2: "2-3", 4: "4", 5: "5", 6: "6", 7: "7"}
    assert {l3: str(cpus) for l3, cpus in topology.l3_groups.items()} == {-1: "6-7", 0: "0-5"}
    assert topology.smt


def test_dies_are_read_and_siblings_are_on_one_die_whatever_a_file_says(machine: Path) -> None:
    for cpu in (1, 5):
        put(machine / f"{CPU}/cpu{cpu}/topology/die_id", "1\n")
    put(machine / f"{CPU}/cpu6/topology/die_id", "3\n")  # its sibling 2 says 0
    put(machine / f"{CPU}/cpu3/topology/die_id", "-1\n")
    topology = read_topology(machine)
    assert groups(topology) == WHOLE
    assert {die: str(cpus) for die, cpus in topology.dies.items()} == {
        (0, 0): "0,4",
        (0, 1): "1,5",
        (1, 0): "2-3,6-7",
    }


def test_memory_nodes_are_those_that_the_kernel_says_have_memory(machine: Path) -> None:
    put(machine / f"{NODE}/online", "0-2\n")
    put(machine / f"{NODE}/node2/cpulist", "\n")
    put(machine / f"{NODE}/has_memory", "1-2\n")
    assert memory_numa_ids(machine) == (1, 2)


def test_memory_nodes_by_their_size_where_nothing_else_tells(machine: Path) -> None:
    put(machine / f"{NODE}/node1/meminfo", "Node 1 MemTotal:              0 kB\nNode 1 MemFree:               0 kB\n")
    assert memory_numa_ids(machine) == (0,)


def test_without_any_word_about_memory_every_node_may_have_some(machine: Path) -> None:
    remove(machine, "meminfo")
    assert memory_numa_ids(machine) == (0, 1)


def test_a_node_without_memory_has_its_cpus(machine: Path) -> None:
    put(machine / f"{NODE}/has_memory", "0\n")
    assert groups(read_topology(machine)) == WHOLE


def test_a_node_of_memory_alone_has_no_cpu(machine: Path) -> None:
    put(machine / f"{NODE}/node2/cpulist", "\n")
    put(machine / f"{NODE}/online", "0-2\n")
    assert numa_ids(machine) == (0, 1, 2)
    assert groups(read_topology(machine))[0] == WHOLE[0]


def test_a_cpu_that_emulated_numa_lists_twice_belongs_to_the_lowest_node(machine: Path) -> None:
    put(machine / f"{NODE}/node1/cpulist", "0-7\n")
    put(machine / f"{NODE}/node0/cpulist", "0-1,4-5\n")
    assert groups(read_topology(machine))[0] == WHOLE[0]


def test_a_cache_is_named_by_its_id_where_it_has_one(machine: Path) -> None:
    put(machine / f"{CPU}/cpu2/cache/index3/id", "9\n")
    assert [cpu.l3 for cpu in read_topology(machine).cpus[:4]] == [0, 1, 9, 3]


def test_the_cache_level_is_what_the_file_says(machine: Path) -> None:
    put(machine / f"{CPU}/cpu0/cache/index3/level", "4\n")
    assert read_topology(machine).cpus[0].l3 == -1


@pytest.mark.parametrize(
    ("missing", "wanted"),
    [
        pytest.param((), "1-6", id="online"),
        pytest.param(("online",), "0-7", id="present"),
        pytest.param(("online", "present"), "0-7", id="folders"),
    ],
)
def test_online_cpus_by_what_the_kernel_offers(machine: Path, missing: tuple[str, ...], wanted: str) -> None:
    put(machine / f"{CPU}/online", "1-6\n")
    put(machine / f"{CPU}/present", "0-7\n")
    for name in missing:
        (machine / CPU / name).unlink()
    assert str(online_cpus(machine)) == wanted


def test_no_cpu_at_all_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="names a CPU"):
        read_topology(tmp_path)


@pytest.mark.parametrize("text", ["0-", "many", "0-99999"])
def test_a_garbled_list_names_its_file(machine: Path, text: str) -> None:
    put(machine / f"{NODE}/node0/cpulist", text)
    with pytest.raises(Unfit, match="node0/cpulist"):
        read_topology(machine)


def test_a_core_in_two_numa_nodes_is_refused(machine: Path) -> None:
    put(machine / f"{NODE}/node0/cpulist", "0-3\n")
    put(machine / f"{NODE}/node1/cpulist", "4-7\n")
    with pytest.raises(Unfit, match="two NUMA nodes"):
        read_topology(machine)


@given(st.integers(1, 3), st.integers(1, 2), st.integers(1, 4), st.integers(1, 2), st.booleans())
def test_what_was_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, sockets: int, numas: int, cores: int, threads: int, with_siblings: bool
) -> None:
    root = tmp_path_factory.mktemp("machine")
    made = Topology.uniform(UniformShape(sockets=sockets, numa_per_socket=numas, cores_per_numa=cores, threads=threads))
    put(root / f"{CPU}/online", f"{made.all}\n")
    for numa, cpus in made.numas.items():
        put(root / f"{NODE}/node{numa}/cpulist", f"{cpus}\n")
    for cpu in made.cpus:
        folder = root / f"{CPU}/cpu{cpu.id}/topology"
        in_socket = sorted({c.core for c in made.cpus if c.socket == cpu.socket})
        put(folder / "physical_package_id", f"{cpu.socket}\n")
        put(folder / "core_id", f"{in_socket.index(cpu.core)}\n")
        if with_siblings:
            put(folder / "core_cpus_list", f"{made.cores[cpu.core]}\n")
    read = read_topology(root)
    assert groups(read) == groups(made)
    assert read.all == made.all == CpuSet.of(cpu.id for cpu in read.cpus)
