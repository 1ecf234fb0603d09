"""Which CPU belongs to which pool, drawn: one letter for each CPU, one line for each run of CPU numbers."""

from collections.abc import Iterator, Mapping

from rich.text import Text

from shared.core.cpuset import CpuSet
from shared.core.layout import RECLAIM, RESERVE, SHARE

LETTERS = {SHARE: "S", RECLAIM: "R", RESERVE: ".", "both": "B", "none": "-"}
STYLES = {"S": "bold cyan", "R": "bold green", "B": "bold yellow", ".": "dim", "-": "dim"}
LEGEND = "S share   R reclaim   B both   . reserve   - no pool"
_BLOCK, _LINE = 8, 64


def letter(cpu: int, pools: Mapping[str, CpuSet]) -> str:
    """The letter of one CPU; a pool without a letter of its own is shown by the first one of its name."""
    holders = [name for name, cpus in pools.items() if cpu in cpus]
    if SHARE in holders and RECLAIM in holders:
        return LETTERS["both"]
    for name in (SHARE, RECLAIM, RESERVE):
        if name in holders:
            return LETTERS[name]
    return holders[0][0].upper() if holders else LETTERS["none"]


def cpu_map(numas: Mapping[int, CpuSet], pools: Mapping[str, CpuSet]) -> Text:
    """The map of the whole machine, ascending by NUMA node and CPU."""
    text = Text()
    width = max((len(label) for cpus in numas.values() for label, _ in _lines(cpus)), default=0)
    for numa, cpus in sorted(numas.items()):
        head = f"NUMA {numa}"
        for label, row in _lines(cpus):
            text.append(f"{head:<8}{label:>{width}}  ")
            for position, cpu in enumerate(row):
                if position and position % _BLOCK == 0:
                    text.append(" ")
                sign = letter(cpu, pools)
                text.append(sign, STYLES.get(sign, "bold magenta"))
            text.append("\n")
            head = ""
    text.append(LEGEND, "dim")
    return text


def _lines(cpus: CpuSet) -> Iterator[tuple[str, list[int]]]:
    """Runs of consecutive CPUs, at most one line long, each with its range."""
    run: list[int] = []
    for cpu in cpus:
        if run and (cpu != run[-1] + 1 or len(run) == _LINE):
            yield str(CpuSet.of(run)), run
            run = []
        run.append(cpu)
    if run:
        yield str(CpuSet.of(run)), run
