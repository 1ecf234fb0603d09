"""Central by the number of nodes: what it spends at rest, and how soon it judges, configures and hears all again.

    python -m bench.cluster.fleet [NODES]...

Simulated nodes over real NATS servers, and an API server of its own (`sublet bench fleet`). Beside it the peer's
arithmetic: Koordinator's agents write one object a node and minute, which its manager and the API server bear.
"""

import asyncio
import sys
from collections.abc import Sequence

from bench.rigs.report import Row, print_rows, progress
from shared.errors import Unavailable
from sublet.fleet.plan import FleetPlan, checked
from sublet.fleet.report import KOORDINATOR_REPORT_S, FleetReport
from sublet.fleet.run import run_fleet

SIZES = (100, 1_000, 10_000)
TARGETS = {10_000: ("25 %, 250 MB", "1 s", "5 s")}
"""CPU and memory, a configuration on all, all heard again (docs/facts/targets.md#reaction-and-cost)."""


def rows_of(report: FleetReport) -> list[Row]:
    """What is told of one fleet."""
    nodes, peer = report.nodes, report.nodes / KOORDINATOR_REPORT_S
    cost, configured, reconnected = TARGETS.get(nodes, ("-", "-", "-"))
    wrong = f"{len(report.false_verdicts)} false, {len(report.missed_verdicts)} missed"
    delays = " / ".join(f"{report.verdict_s(percent) or 0:.1f}" for percent in (50, 99))
    return [
        Row(f"central at rest, {nodes} nodes: CPU of a core, RSS",
            f"{report.cpu_of_a_core or 0:.1%}, {(report.rss_bytes or 0) / 1e6:.0f} MB", nodes, cost),
        Row(f"central's writes to the API server, {nodes} nodes; Koordinator's agents",
            f"{report.writes_per_s or 0:.2f} /s; {peer:.1f} /s", nodes, "20 /s"),
        Row(f"verdict on a silent node after it was due, {nodes} nodes, p50 / p99", f"{delays} s",
            len(report.verdicts_s), "-"),
        Row(f"wrong verdicts, {nodes} nodes", wrong, nodes, "0 false, 0 missed"),
        Row(f"configuration told to all of {nodes} nodes; on all of them; known to central",
            f"{report.told_s or 0:.1f} s; {report.configured_s or 0:.1f} s; {report.acknowledged_s or 0:.1f} s", nodes,
            configured),
        Row(f"CPU of {nodes} simulated nodes, one process, to read it", f"{report.configure_cpu_s or 0:.1f} s", nodes,
            "-"),
        Row(f"all of {nodes} nodes heard again after all servers were killed; central's CPU for it",
            f"{report.reconnected_s or 0:.1f} s; {report.storm_cpu_s or 0:.2f} s", nodes, reconnected),
    ]  # fmt: skip


async def measured(sizes: Sequence[int]) -> list[Row]:
    """The rows of fleets of these sizes; one that this machine cannot carry is a row that says why."""
    found: list[Row] = []
    for nodes in sizes:
        try:
            found += rows_of(await run_fleet(checked(FleetPlan(nodes)), progress))
        except Unavailable as error:
            found.append(Row(f"central, {nodes} nodes", f"not measured: {error}", nodes, "-"))
    return found


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    return await measured(SIZES)


def main() -> None:
    """Print the table."""
    print_rows(asyncio.run(measured([int(word) for word in sys.argv[1:]] or SIZES)))


if __name__ == "__main__":
    main()
