"""The CPU map: by socket, NUMA node and core where the topology is told, and readable without colour."""

import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present
from rich.console import Console

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Cpu, Topology, UniformShape
from sublet.views import top
from sublet.views.cpu_map import MapSymbols, cpu_map, level, machine_map, topology_map
from sublet.views.facts import read

TUTORIAL_NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))
CELL = re.compile(r"(\x1b\[[0-9;]+m)([A-Z])")
POOLS = {"share": "11,22-23,35,46-47", "reclaim": "0-10,12-21,24-34,36-45"}

TUTORIAL_MAP = """\
socket 0  NUMA 0   0-11,24-35  RR RR RR RR RR RR RR RR  RR RR RR SS
socket 1  NUMA 1  12-23,36-47  RR RR RR RR RR RR RR RR  RR RR SS SS
S share   R reclaim, a group is a core"""

CACHES_MAP = """\
socket 0  NUMA 0  0 ... 45  SR RR RR RR | RR RR RR RR
          NUMA 1  1 ... 46  RR RR RR RR | RR RR RR RR
          NUMA 2  2 ... 47  RR RR RR RR | RR RR RR Rx
S share   R reclaim   x offline, a group is a core, | parts L3 caches"""

BUSY_MAP = """\
socket 0  NUMA 0  0 ... 45  SR RR RR RR | RR RR RR RR
                            90            0
          NUMA 1  1 ... 46  RR RR RR RR | RR RR RR RR
          NUMA 2  2 ... 47  RR RR RR RR | RR RR RR Rx
                                                    5
S share   R reclaim   x offline   0-9 busy tenths, a group is a core, | parts L3 caches"""

SMALL_MAP = """\
socket 0  NUMA 0  0-1  SB
S share   B reclaim and tenants"""


def sets(pools: dict[str, str]) -> dict[str, CpuSet]:
    return {name: CpuSet.parse(cpus) for name, cpus in pools.items()}


def rows_of(topology: Topology) -> list[list[int]]:
    return [[cpu.id, cpu.numa, cpu.socket, cpu.core, cpu.l3] for cpu in topology.cpus]


@pytest.mark.parametrize(
    ("topology", "pools", "offline", "drawn"),
    [
        pytest.param(TUTORIAL_NODE, POOLS, "", TUTORIAL_MAP, id="the quick start's machine"),
        pytest.param(
            Topology.uniform(
                UniformShape(
                    sockets=1, numa_per_socket=3, cores_per_numa=8, threads=2, numbering="interleaved", cores_per_l3=4
                )
            ),
            {"share": "0", "reclaim": "1-47"},
            "47",
            CACHES_MAP,
            id="caches and numbers that interleave",
        ),
        pytest.param(
            Topology.uniform(UniformShape(sockets=1, numa_per_socket=1, cores_per_numa=2, threads=1)),
            {"share": "0-1", "reclaim": "1"},
            "",
            SMALL_MAP,
            id="two CPUs without siblings",
        ),
    ],
)
def test_the_map_of_a_machine_as_printed(topology: Topology, pools: dict[str, str], offline: str, drawn: str) -> None:
    assert topology_map(topology, sets(pools), CpuSet.parse(offline)).plain == drawn


@pytest.mark.parametrize(
    ("pools", "drawn"),
    [
        pytest.param({"share": "0-1", "reclaim": "1"}, "SB--", id="pools that overlap"),
        pytest.param({"reserve": "0", "share": "0-1", "reclaim": "2"}, "SSR-", id="a reserve inside the tenants' pool"),
        pytest.param({"reserve": "0"}, ".---", id="reserve alone"),
        pytest.param({"dedicated": "3"}, "---D", id="dedicated"),
        pytest.param({"dedicated": "0", "db": "1", "bench": "2", "share": "3"}, "DZES", id="letters that are taken"),
        pytest.param({"batch": "1", "share": "0-2"}, "SAS-", id="a pool by name inside the tenants' pool"),
    ],
)
def test_each_cpu_has_the_letter_of_its_pool(pools: dict[str, str], drawn: str) -> None:
    text = cpu_map({0: CpuSet.parse("0-3")}, sets(pools))
    assert text.plain.splitlines()[0] == f"NUMA 0  0-3  {drawn}"


def test_how_busy_the_cpus_are_stands_below_them_where_it_is_known() -> None:
    topology = Topology.uniform(
        UniformShape(sockets=1, numa_per_socket=3, cores_per_numa=8, threads=2, numbering="interleaved", cores_per_l3=4)
    )
    first, *_ = topology.cores.values()
    sibling = max(first)
    busy_percent = {0: 100, sibling: 9, 12: 0, 47: 59}
    drawn = topology_map(topology, sets({"share": "0", "reclaim": "1-47"}), CpuSet.parse("47"), busy_percent)
    assert drawn.plain == BUSY_MAP


def test_by_numa_node_too() -> None:
    drawn = cpu_map({0: CpuSet.parse("0-9")}, sets({"share": "0-9"}), {0: 10, 8: 89, 9: 90}).plain
    assert drawn == "NUMA 0  0-9  SSSSSSSS SS\n             1        89\nS share   0-9 busy tenths"


@given(st.integers(0, 100))
def test_a_level_is_one_digit_that_never_falls_while_usage_rises(percent: int) -> None:
    assert level(None) == " "
    assert len(level(percent)) == 1
    assert level(percent) >= level(max(0, percent - 1))


def test_only_the_live_screen_shows_usage_and_only_what_is_measured(answers: dict[str, Any]) -> None:
    answers["qrm"]["topology"] = rows_of(TUTORIAL_NODE)
    answers["metrics"]["sample"]["node_reading"]["cpus"] = {"cpus": "0,24", "busy_percent": [35, 99]}
    facts = read("node1", answers)
    assert present(machine_map(facts)).plain == TUTORIAL_MAP
    below = present(machine_map(facts, usage=True)).plain.splitlines()[1]
    assert below.split() == ["39"]
    answers["metrics"]["sample"]["node_reading"]["cpus"] = {"cpus": "0-9", "busy_percent": [35, 99]}
    assert present(machine_map(read("node1", answers), usage=True)).plain == TUTORIAL_MAP, (
        "a list that does not fit is no figure"
    )


MACHINES = st.builds(
    UniformShape,
    sockets=st.integers(1, 3),
    numa_per_socket=st.integers(1, 3),
    cores_per_numa=st.integers(1, 40),
    threads=st.integers(1, 4),
    numbering=st.sampled_from(["split", "adjacent", "interleaved"]),
    cores_per_l3=st.none() | st.integers(1, 8),
).map(Topology.uniform)
CPUS = st.sets(st.integers(0, 200))


@given(MACHINES, CPUS, CPUS)
def test_the_map_draws_every_cpu_once_and_siblings_side_by_side(
    topology: Topology, share: set[int], reclaim: set[int]
) -> None:
    pools = {"share": CpuSet.of(share), "reclaim": CpuSet.of(reclaim)}
    *rows, _ = topology_map(topology, pools).plain.splitlines()
    signs = MapSymbols(pools)
    order = sorted(topology.cpus, key=lambda cpu: (cpu.socket, cpu.numa, cpu.l3, cpu.core, cpu.id))
    letters = "".join(row[_label_end(row) :] for row in rows)
    assert "".join(letter for letter in letters if letter not in " |") == "".join(signs.of(cpu.id) for cpu in order)
    if topology.smt:
        groups = [group for row in rows for group in row[_label_end(row) :].split() if group != "|"]
        assert groups == ["".join(signs.of(cpu) for cpu in topology.cores[core]) for core in _cores(order)]


def _label_end(row: str) -> int:
    """Where the letters begin: behind the last digit of the label."""
    return max(place for place, sign in enumerate(row) if sign.isdigit()) + 1


def _cores(order: list[Cpu]) -> list[int]:
    return list(dict.fromkeys(cpu.core for cpu in order))


@given(st.sets(st.integers(0, 300), min_size=1), CPUS, CPUS)
def test_without_a_topology_the_map_draws_every_cpu_once_too(
    cpus: set[int], share: set[int], reclaim: set[int]
) -> None:
    pools = {"share": CpuSet.of(share), "reclaim": CpuSet.of(reclaim)}
    rows = cpu_map({0: CpuSet.of(cpus)}, pools).plain.splitlines()[:-1]
    signs = MapSymbols(pools)
    drawn = "".join(row.split("  ")[-1].replace(" ", "") for row in rows)
    assert drawn == "".join(signs.of(cpu) for cpu in sorted(cpus))


@given(st.sets(st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True), max_size=30))
def test_every_pool_has_a_letter_of_its_own(names: set[str]) -> None:
    signs = MapSymbols({name: CpuSet.of([cpu]) for cpu, name in enumerate(sorted(names))})
    letters = [signs.of(cpu) for cpu in range(len(names))]
    assert len(set(letters)) == len(names)
    assert not {"-", "x", "B"} & set(letters)


def test_the_map_is_told_by_socket_and_core_once_qrm_tells_the_topology(answers: dict[str, Any]) -> None:
    answers["qrm"]["topology"] = rows_of(TUTORIAL_NODE)
    assert present(machine_map(read("node1", answers))).plain == TUTORIAL_MAP
    answers["metrics"]["sample"]["node_reading"]["online_cpus"] = "0-46"
    assert present(machine_map(read("node1", answers))).plain.splitlines()[1].endswith("SS Sx")


@pytest.mark.parametrize("topology", [[], "0-47", [[0, 0, 0]], [[0, 0, 0, 0, "x"]], [[0, 0, 0, 0, True]], [3], None,
                                      [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]])  # fmt: skip
def test_a_topology_that_cannot_be_read_leaves_the_map_by_numa_node(
    answers: dict[str, Any], topology: list[Any] | str | None
) -> None:
    answers["qrm"]["topology"] = topology
    assert present(machine_map(read("node1", answers))).plain.startswith("NUMA 0   0-11  RRRRRRRR RRRS\n")


@pytest.mark.parametrize("service", ["metrics", "qrm"])
def test_the_map_needs_pools_and_cpus(answers: dict[str, Any], service: str) -> None:
    drawn = machine_map(read("node1", answers | {service: None}))
    assert drawn is None


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colours_the_letters_stay(answers: dict[str, Any], environment: dict[str, str]) -> None:
    answers["qrm"]["topology"] = rows_of(TUTORIAL_NODE)
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, _environ={"TERM": "xterm-256color"} | environment)
    console.print(top.render(read("node1", answers)))
    assert not re.search(r"\x1b\[[0-9;]*[349][0-7]m", out.getvalue())
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert TUTORIAL_MAP in plain


def test_with_colours_each_pool_has_its_own(answers: dict[str, Any]) -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, _environ={"TERM": "xterm-256color"})
    console.print(machine_map(read("node1", answers)))
    assert {"\x1b[1;32mR", "\x1b[1;36mS"} <= {colour + letter for colour, letter in CELL.findall(out.getvalue())}
