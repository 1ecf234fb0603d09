"""`sublet pause` and `sublet resume`: the hand brake on this node's evictions."""

from typing import Annotated

import typer

from sublet.terminal.dry_run import DryRun


def register(app: typer.Typer) -> None:
    """Add both commands."""
    app.command()(pause)
    app.command()(resume)


def pause(
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why; shown in sublet status.")] = "by hand",
    for_how_long: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="End by itself after 90s, 30m, 2h or 1d.")
    ] = "",
    dry_run: DryRun = False,
) -> None:
    """Stop all evictions on this node, at once, until `sublet resume` or for a duration, by the clock of this machine.

    Needs neither the bus nor central, and holds through restarts. A pod that has already been told to end still ends.
    The evictor is asked afterwards. Exit code 0: it says that evictions are paused; 1: it says that they are not; 3:
    the pause is written, and the evictor does not answer.
    """
    from datetime import UTC, datetime, timedelta

    from sublet.host.brake import pull, rehearse_pull
    from sublet.timespec import parse_duration_s

    end = datetime.now(UTC) + timedelta(seconds=parse_duration_s(for_how_long)) if for_how_long else None
    _say(rehearse_pull(end) if dry_run else pull(reason, end))


def resume(dry_run: DryRun = False) -> None:
    """Let this node evict again. Exit codes as those of `sublet pause`."""
    from sublet.host.brake import rehearse_release, release

    _say(rehearse_release() if dry_run else release())


def _say(outcome: tuple[str, int]) -> None:
    words, code = outcome
    typer.echo(words, err=code != 0)
    raise typer.Exit(code)
