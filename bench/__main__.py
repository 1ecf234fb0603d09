"""`make bench`: all measurements, or those named, in one table with machine, N, date, and what disturbed them.

A part that was disturbed is measured again. The table is kept in out/bench, and compared with the last one kept there.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Sequence

from bench import (
    breach,
    calculators,
    footprint,
    metrics_pass,
    node_metric,
    reaction,
    replay,
    service_passes,
    source_cost,
    stored,
)
from bench.cluster import (
    central_mirrors,
    central_second,
    extender,
    fleet,
    metrics_api,
    node_messages,
    service_profiles,
    tide_pass,
    webhook,
)
from bench.process import command_start, tracing_cost
from bench.rigs.disturbance import REPEATS, Tries, Watch
from bench.rigs.report import Row, Run, add_options, observed, progress, publish, run_before, stage, tell
from bench.shape import shared_cpus
from shared.errors import Refused
from shared.settings import CommonSettings
from sublet.host.preflight import check_host

NAME = "host"
MODULES = (
    reaction, breach, stored, footprint, metrics_pass, service_passes, shared_cpus, source_cost, calculators, webhook,
    extender, central_mirrors, central_second, metrics_api, node_messages, service_profiles, node_metric, replay,
    tide_pass, tracing_cost, command_start, fleet,
)  # fmt: skip
PARTS = {part.__name__.rpartition(".")[2]: part for part in MODULES}


async def _measured(names: Sequence[str], repeats: int) -> AsyncIterator[list[Row]]:
    for name in names:
        stage(f"part {name}")
        tries = Tries[list[Row]](repeats)
        while tries.wanted():
            watch = Watch()
            found = await PARTS[name].measure()
            tries.add(found, watch.disturbance())
            progress("")
        yield observed(*tries.best, len(tries.made))


async def _measure(chosen: argparse.Namespace, before: Run | None) -> None:
    rows: list[Row] = []
    try:
        async for found in _measured(chosen.parts or list(PARTS), chosen.repeats):
            rows += found
            tell(found)
    finally:  # what was measured before a part failed, or was interrupted, is worth its minutes
        progress("")
        if rows:
            publish(Run.here(NAME, rows), before, chosen.output)


def main() -> int:
    """Measure these parts, all where none is named, and print."""
    words = argparse.ArgumentParser(prog="make bench", description=__doc__)
    words.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all where none is named")
    words.add_argument("--repeats", type=int, default=REPEATS, help="of a part that was disturbed, at most")
    add_options(words)
    chosen = words.parse_args()
    if unknown := [name for name in chosen.parts if name not in PARTS]:
        words.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    missing = check_host(CommonSettings())
    if missing:
        print("bench measures on real cgroups; this machine lacks: " + "; ".join(missing), file=sys.stderr)
        return 2
    try:
        before = run_before(NAME, chosen.against)
    except Refused as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    asyncio.run(_measure(chosen, before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
