"""`make bench`: all measurements, or those named, in one table with machine, N and date; also in out/bench.json."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench import breach, calculators, footprint, metrics_pass, node_metric, reaction, source_cost, stored, webhook
from bench.rigs.host import Row, machine, progress
from shared.settings import CommonSettings
from sublet.host.preflight import check_host

OUT = Path("out/bench.json")
PARTS = {
    part.__name__.rpartition(".")[2]: part
    for part in (reaction, breach, stored, footprint, metrics_pass, source_cost, calculators, webhook, node_metric)
}


async def _measured(names: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        rows += await PARTS[name].measure()
        progress("")
    return rows


def main(names: Sequence[str]) -> int:
    """Measure these parts, all where none is named, and print."""
    if unknown := [name for name in names if name not in PARTS]:
        print(f"bench has no part {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    missing = check_host(CommonSettings())
    if missing:
        print("bench measures on real cgroups; this machine lacks: " + "; ".join(missing), file=sys.stderr)
        return 2
    rows = asyncio.run(_measured(names or list(PARTS)))
    width = max(len(row.what) for row in rows)
    print(f"Sublet on {machine()}")
    print(f"{'what':<{width}}  {'figure':>16}  {'N':>4}  target")
    for row in rows:
        print(f"{row.what:<{width}}  {row.figure:>16}  {row.n:>4}  {row.target}")
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({"machine": machine(), "rows": [asdict(row) for row in rows]}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
