"""What each source of metrics costs: a reading of one target, and all of them as a share of a core.

    python -m bench.source_cost [pods]

"At rest" counts a gated source once in three quarters of its longest age, which is what the turns give on average;
"all moving" counts it in every pass, or once in its pause.
"""

import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.rigs.metrics import PERIOD_S, REST_PERIOD_S, Rig, rig
from bench.rigs.report import Row, machine
from services.metrics.core.figures.figure import Total
from services.metrics.core.figures.target import Kind, Target
from services.metrics.core.source import Source
from services.metrics.registry import known_sources

PODS = 50
ROUNDS = 40
USUAL_TURN = 0.75


@dataclass(frozen=True, slots=True)
class Cost:
    """One source on one kind of target. `reading_us`: one target once; `every_s` None: in every pass; `pause_s`: how
    often while it goes on moving, at most."""

    source: str
    declared: str
    kind: Kind
    targets: int
    reading_us: float
    every_s: float | None
    pause_s: float = 0.0

    @property
    def pass_us(self) -> float:
        """A pass in which all are read."""
        return self.reading_us * self.targets

    @property
    def moving(self) -> float:
        """Share of a core where all move without end, at the default period."""
        return self.pass_us / 1e6 / max(PERIOD_S, self.pause_s)

    @property
    def at_rest(self) -> float:
        """Share of a core where nothing moves, at the period of a node at rest."""
        every_s = 0.0 if self.every_s is None else self.every_s * USUAL_TURN
        return self.pass_us / 1e6 / max(REST_PERIOD_S, every_s)


def costs(here: Rig) -> Iterator[Cost]:
    """Every source on every kind of target that it reads."""
    targets = list(here.targets(here.pods))
    for name, source in known_sources().items():
        for kind, figures in source.figures.items():
            own = [target for target in targets if target.kind == kind]
            if own and not all(isinstance(figure, Total) for figure in figures):
                gate = source.gates.get(kind)
                spent = statistics.median(_spent_us(here, source, own) for _ in range(ROUNDS))
                often = (gate.every_s, gate.pause_s) if gate else (None, 0.0)
                yield Cost(name, source.cost, kind, len(own), spent / len(own), *often)


def _spent_us(here: Rig, source: Source, targets: Sequence[Target]) -> float:
    here.host.begin(targets)
    before = time.process_time_ns()
    for target in targets:
        source.read(here.host, target)
    return (time.process_time_ns() - before) / 1000


def table(rows: Sequence[Cost]) -> str:
    """The table, dearest first, with the sums."""
    lines = ["| source | declared | of | targets | us a reading | us a pass | at rest | all moving |", "|---" * 8 + "|"]
    for row in sorted(rows, key=lambda row: (-row.moving, row.source, row.kind)):
        often = "every pass" if row.every_s is None else f"{row.every_s:g} s"
        lines.append(f"| {row.source} | {row.declared}, {often} | {row.kind} | {row.targets} | {row.reading_us:.1f} "
                     f"| {row.pass_us:.0f} | {row.at_rest:.4%} | {row.moving:.4%} |")  # fmt: skip
    whole, rest = sum(row.moving for row in rows), sum(row.at_rest for row in rows)
    lines.append(f"| all | | | | | {sum(row.pass_us for row in rows):.0f} | {rest:.4%} | {whole:.4%} |")
    return "\n".join(lines)


async def measure() -> list[Row]:
    """Rows of the table of `make bench`: a source each, all its targets together."""
    with rig(PODS) as here:
        rows = list(costs(here))
    names = sorted({row.source for row in rows}, key=lambda name: (-_sum(rows, name)[1], name))
    return [
        Row(
            f"metrics source {name}, {PODS} pods at rest / all moving",
            f"{_sum(rows, name)[0]:.3%} / {_sum(rows, name)[1]:.3%}",
            ROUNDS,
            "",
        )
        for name in names
    ]


def _sum(rows: Sequence[Cost], source: str) -> tuple[float, float]:
    own = [row for row in rows if row.source == source]
    return sum(row.at_rest for row in own), sum(row.moving for row in own)


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else PODS
    with rig(count) as here:
        print(f"cost of metrics by source, {count} pods, N = {ROUNDS}, {machine()}; {here.what}\n")
        print(table(list(costs(here))))


if __name__ == "__main__":
    main()
