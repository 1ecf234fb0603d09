"""Draws which CPU belongs to which pool: one letter per CPU, so that it reads the same without colour.

If qrm reports the topology, a line is a NUMA node of a socket and the siblings of a core are adjacent; otherwise a line
is a run of CPU numbers. Optionally a line of digits below each shows how busy the CPUs are.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from string import ascii_letters

from rich.text import Text

from shared.core.cgroups.layout import DEDICATED, RECLAIM, RESERVE, SHARE
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology
from sublet.views.facts import NodeFacts

BOTH, NO_POOL, OFFLINE = "B", "-", "x"
_FIXED = {SHARE: "S", RECLAIM: "R", DEDICATED: "D", RESERVE: "."}
_STYLES = {
    "S": "bold cyan",
    "R": "bold green",
    "D": "bold magenta",
    BOTH: "bold yellow",
    ".": "dim",
    NO_POOL: "dim",
    OFFLINE: "dim",
}
_OTHER_STYLES = ("bold blue", "bold red", "magenta", "blue", "red", "cyan")
_BLOCK, _LINE = 8, 64
_CORES_A_LINE = 16
_LABEL = 24
"""Longest list of CPUs beside a line; numbers that interleave over the nodes give no short list."""


class MapSymbols:
    """The letter of every CPU, and what each letter means. `busy_percent` by CPU: digits below the letters."""

    def __init__(
        self,
        pools: Mapping[str, CpuSet],
        offline: CpuSet | None = None,
        busy_percent: Mapping[int, int] | None = None,
    ) -> None:
        self._pools, self._offline = pools, offline or CpuSet()
        self._busy_percent = busy_percent or {}
        self._below = Text()
        self._letters = _letters(pools)
        others = [letter for pool, letter in self._letters.items() if pool not in _FIXED]
        colours = {letter: _OTHER_STYLES[n % len(_OTHER_STYLES)] for n, letter in enumerate(others)}
        self._styles = colours | _STYLES
        self._drawn: set[str] = set()

    def of(self, cpu: int) -> str:
        """Reclaimed work that shares a CPU with tenants has a letter of its own; of several tenants the smallest."""
        holders = [pool for pool, cpus in self._pools.items() if cpu in cpus]
        tenants = [pool for pool in holders if pool not in (RECLAIM, RESERVE)]
        if cpu in self._offline:
            return OFFLINE
        if RECLAIM in holders:
            return BOTH if tenants else self._letters[RECLAIM]
        if tenants:
            # The largest would cover the small ones that lie in it.
            return self._letters[min(tenants, key=lambda pool: (len(self._pools[pool]), pool))]
        return self._letters[RESERVE] if holders else NO_POOL

    def begin(self, text: Text, label: str) -> None:
        """Begin a line with what stands left of the letters."""
        text.append(label)
        self._below = Text(" " * len(label))

    def space(self, text: Text, gap: str) -> None:
        """Leave a gap between letters."""
        text.append(gap)
        self._below.append(" " * len(gap))

    def draw(self, text: Text, cpu: int) -> None:
        """Add the letter of a CPU in the colour of its pool."""
        sign = self.of(cpu)
        self._drawn.add(sign)
        text.append(sign, self._styles[sign])
        self._below.append(level(self._busy_percent.get(cpu)), self._styles[sign])

    def end(self, text: Text) -> None:
        """End a line; below it how busy its CPUs are, where that is known of any."""
        text.append("\n")
        if self._below.plain.strip():
            self._below.rstrip()
            text.append(self._below).append("\n")

    def legend(self) -> str:
        """What the letters mean that have been drawn."""
        meaning = {letter: pool for pool, letter in self._letters.items()}
        meaning |= {BOTH: "reclaim and tenants", NO_POOL: "no pool", OFFLINE: "offline"}
        words = [f"{sign} {words}" for sign, words in meaning.items() if sign in self._drawn]
        return "   ".join([*words, *(["0-9 busy tenths"] if self._busy_percent else [])])


def level(percent: int | None) -> str:
    """How busy a CPU is, in tenths: 0 to 9, where 9 is nine tenths and more; blank where it is not known."""
    return " " if percent is None else str(min(9, percent // 10))


def machine_map(facts: NodeFacts, *, usage: bool = False) -> Text | None:
    """The node's map from what its services tell, with the CPUs' `usage`; None where nobody tells pools or CPUs."""
    if facts.allocation is None:
        return None
    pools = {pool.pool: CpuSet.parse(pool.cpus) for pool in facts.allocation.pools}
    measured = facts.sample.node_reading.cpus if usage and facts.sample else None
    busy_percent = measured.by_cpu() if measured else {}
    topology = facts.topology
    if topology is not None:
        gone = topology.all - facts.online if facts.online else CpuSet()
        return topology_map(topology, pools, gone | facts.offline, busy_percent)
    return cpu_map(facts.numas, pools, busy_percent) if facts.numas else None


def topology_map(
    topology: Topology,
    pools: Mapping[str, CpuSet],
    offline: CpuSet | None = None,
    busy_percent: Mapping[int, int] | None = None,
) -> Text:
    """The map by socket, NUMA node and core, ascending; a bar stands between cores of different L3 caches."""
    signs, text = MapSymbols(pools, offline, busy_percent), Text()
    lines = list(_core_lines(topology))
    labels = [_label(CpuSet.of(cpu for core in cores for cpu in core)) for _, cores in lines]
    width = max(map(len, labels))
    l3s = {cpu.id: cpu.l3 for cpu in topology.cpus}
    last: tuple[int | None, int | None] = (None, None)
    for (place, cores), label in zip(lines, labels, strict=True):
        head = f"socket {place[0]}" if place[0] != last[0] else ""
        node = f"NUMA {place[1]}" if place != last else ""
        last = place
        signs.begin(text, f"{head:<10}{node:<8}{label:>{width}}  ")
        for position, core in enumerate(cores):
            if position:
                same_l3 = l3s[core[0]] == l3s[cores[position - 1][0]]
                signs.space(text, _gap(position, smt=topology.smt, same_l3=same_l3))
            for cpu in core:
                signs.draw(text, cpu)
        signs.end(text)
    hints = (", a group is a core" if topology.smt else "") + (
        ", | parts L3 caches" if len(set(l3s.values())) > 1 else ""
    )
    text.append(signs.legend() + hints, "dim")
    return text


def cpu_map(
    numas: Mapping[int, CpuSet], pools: Mapping[str, CpuSet], busy_percent: Mapping[int, int] | None = None
) -> Text:
    """The map where only NUMA nodes are known, ascending by node and CPU."""
    signs, text = MapSymbols(pools, busy_percent=busy_percent), Text()
    width = max((len(label) for cpus in numas.values() for label, _ in _runs(cpus)), default=0)
    for numa, cpus in sorted(numas.items()):
        head = f"NUMA {numa}"
        for label, row in _runs(cpus):
            signs.begin(text, f"{head:<8}{label:>{width}}  ")
            for position, cpu in enumerate(row):
                if position and position % _BLOCK == 0:
                    signs.space(text, " ")
                signs.draw(text, cpu)
            signs.end(text)
            head = ""
    text.append(signs.legend(), "dim")
    return text


def _letters(pools: Mapping[str, CpuSet]) -> dict[str, str]:
    """A letter for each pool: fixed ones, else the first free one of its name, else the first free of all."""
    letters = {pool: letter for pool, letter in _FIXED.items() if pool in pools}
    taken = {*_FIXED.values(), BOTH, NO_POOL, OFFLINE}
    for pool in sorted(pools.keys() - _FIXED.keys()):
        wishes = (*pool.upper(), *reversed(ascii_letters))
        letters[pool] = next((wish for wish in wishes if wish in ascii_letters and wish not in taken), "?")
        taken.add(letters[pool])
    return letters


def _core_lines(topology: Topology) -> Iterator[tuple[tuple[int, int], list[list[int]]]]:
    """Socket and NUMA node with their cores, at most one line long; a core is the list of its CPUs."""
    rows = {cpu.id: cpu for cpu in topology.cpus}
    cores = [(cpus, rows[core]) for core, cpus in topology.cores.items()]
    # By cache before number: on machines whose numbers go round the caches there would be a bar at every core.
    cores.sort(key=lambda pair: (pair[1].socket, pair[1].numa, pair[1].l3, pair[1].id))
    a_line = _CORES_A_LINE if topology.smt else _LINE
    for place, members in groupby(cores, key=lambda pair: (pair[1].socket, pair[1].numa)):
        here = [list(cpus) for cpus, _ in members]
        for first in range(0, len(here), a_line):
            yield place, here[first : first + a_line]


def _gap(position: int, *, smt: bool, same_l3: bool) -> str:
    if not same_l3:
        return " | "
    return (" " if smt else "") + (" " if position % _BLOCK == 0 else "")


def _label(cpus: CpuSet) -> str:
    text = str(cpus)
    if len(text) <= _LABEL:
        return text
    numbers = list(cpus)
    return f"{numbers[0]} ... {numbers[-1]}"


def _runs(cpus: CpuSet) -> Iterator[tuple[str, list[int]]]:
    """Runs of consecutive CPUs, at most one line long, each with its range."""
    run: list[int] = []
    for cpu in cpus:
        if run and (cpu != run[-1] + 1 or len(run) == _LINE):
            yield str(CpuSet.of(run)), run
            run = []
        run.append(cpu)
    if run:
        yield str(CpuSet.of(run)), run
