"""How many rows of a replay are judged in a second: one frame of one contender is a row.

    python -m bench.replay

Nodes are made up: tenants that walk up and down by chance, the same in every run. CPU time of this process counts, with
the making of the frames; what other work does to the machine's caches and clock remains, and is said.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from random import Random

from bench.rigs.report import Row, machine, progress
from sublet.replay.batch import BatchRules
from sublet.replay.contender import Contender
from sublet.replay.frontier.sweep import families_of, texts_of
from sublet.replay.rows import rows_of
from sublet.replay.run import replay
from sublet.replay.traces.frames import Trace
from sublet.replay.traces.tenants import Packing, TenantSeries, nodes_of

INTERVAL_S = 300.0
VALUES = 288
FRAMES = 600
RULES = BatchRules()
FAMILIES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "canonical": (["canonical"], []),
    "adaptive": (["adaptive"], []),
    "canonical and both peers": (["canonical"], ["katalyst", "koordinator"]),
}


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    return replay_rows()


def replay_rows() -> list[Row]:
    """Rows a second of a policy, of the peers and of the frontier, on nodes of a few tenants and of many."""
    rows = []
    for tenants in (10, 130):
        for what, (policies, peers) in FAMILIES.items():
            # The baseline, which comes with every comparison, costs next to nothing.
            chosen = [row for row in rows_of(policies, peers, RULES) if row.name != "static"]
            rows.append(_row(what, tenants, chosen, FRAMES))
        rows.append(_row("the whole frontier", tenants, rows_of(*texts_of(families_of((), ())), RULES), FRAMES // 10))
    return rows


def _row(what: str, tenants: int, contenders: Sequence[Contender], frames: int) -> Row:
    progress(f"replay, {what}, {tenants} tenants")
    before_s = time.process_time()
    outcome = replay([_node(tenants, frames)], contenders, RULES)
    judged = outcome.frames * len(contenders)
    rate = judged / (time.process_time() - before_s)
    return Row(f"replay, {what}, {tenants} tenants", f"{rate:.0f} rows a second", judged, "")


def _node(tenants: int, frames: int) -> Trace:
    """The first frames of a day of one node."""
    chance = Random(tenants)
    series = [TenantSeries(f"t{n}", [INTERVAL_S * v for v in range(VALUES)], _walk(chance)) for n in range(tenants)]
    packing = Packing(cpus=4 * tenants, pods_per_node=0, between="phase")
    (trace,) = nodes_of(series, INTERVAL_S, packing, "made-up")
    return replace(trace, columns=lambda: islice(trace.to_replay(), frames))


def _walk(chance: Random) -> list[float]:
    used = [chance.uniform(0, 4)]
    for _ in range(VALUES - 1):
        used.append(min(4.0, max(0.0, used[-1] + chance.gauss(0, 0.4))))
    return used


def main() -> None:
    rows = replay_rows()
    progress("")
    print(f"rows a second of CPU time; {machine()}\n\n| what | rows a second | n |\n|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.figure} | {row.n} |")


if __name__ == "__main__":
    main()
