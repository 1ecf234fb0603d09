"""`sublet demo`: a service and batch work on this machine, without and with Sublet, and a report that compares them."""

from pathlib import Path
from typing import Annotated

import typer

from sublet.terminal.dry_run import DryRun


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    sim: Annotated[bool, typer.Option("--sim", help="On the simulated machine, also where this one would do.")] = False,
    report: Annotated[Path, typer.Option(help="Folder that the report is written to.")] = Path("out/demo"),
    dry_run: DryRun = False,
) -> None:
    """Run a service beside batch work, without and with Sublet. About two minutes: as root on this machine's real
    cgroups, which are restored afterwards, else on the simulated machine. Writes report.html and report.json. Exit
    code 1: Sublet failed in something that it promises.
    """
    from sublet.demo.__main__ import run_demo

    raise SystemExit(run_demo(report, on_simulator=sim, dry_run=dry_run))
