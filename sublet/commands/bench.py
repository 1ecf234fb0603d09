"""`sublet bench`: measure parts of Sublet at sizes that this machine has none of."""

import sys
from typing import Annotated

import typer

from sublet.exit_codes import FAILED, OK
from sublet.terminal.formats import DOCUMENT, document_text


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Measure parts of Sublet with simulated load, on loopback alone.", no_args_is_help=True)
    group.callback()(_group)
    group.command()(fleet)
    app.add_typer(group, name="bench")


def _group() -> None:
    """Keeps `fleet` a command of its own, however few there are."""


def fleet(
    nodes: Annotated[int, typer.Option("--nodes", help="How many nodes there are.")] = 1000,
    leaves: Annotated[int, typer.Option("--leaves", help="Leaf servers between them and the hub.")] = 2,
    period_s: Annotated[float, typer.Option("--period", help="Seconds between two heartbeats of a node.")] = 10.0,
    seconds: Annotated[float, typer.Option("--seconds", help="How long central is watched at rest.")] = 30.0,
    shards: Annotated[int, typer.Option("--shards", help="Parts of the heartbeats, and centrals that hear them.")] = 1,
    bus_alone: Annotated[bool, typer.Option("--bus-alone", help="Without an API server.")] = False,
    output: Annotated[str, DOCUMENT.option] = "table",
) -> None:
    """Measure central with so many simulated nodes, over real NATS servers and an API server of its own.

    Prints what central spends, how soon it notices nodes that fall silent, how long a configuration and a reconnection
    of all take, and every verdict that was wrong. Exit code 1: one was. Takes some two minutes with the defaults.
    """
    import asyncio

    from sublet.fleet.plan import FleetPlan, checked
    from sublet.fleet.run import run_fleet

    wanted = DOCUMENT.read(output)
    plan = checked(FleetPlan(nodes, period_s, leaves, seconds, cluster=not bus_alone, shards=shards))
    report = asyncio.run(run_fleet(plan, _progress))
    _progress("")
    if wanted.is_table:
        width = max(len(name) for name, _ in report.lines())
        for name, figure in report.lines():
            typer.echo(f"{name:<{width}}  {figure}")
    else:
        typer.echo(document_text(report.document(), wanted))
    raise SystemExit(OK if report.well else FAILED)


def _progress(text: str) -> None:
    """One line that is written over on a terminal, a line for each stage otherwise."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)
