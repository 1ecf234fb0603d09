"""`sublet pause` and `sublet resume`: the hand brake on this node's evictions."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add both commands."""
    app.command()(pause)
    app.command()(resume)


def pause(
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why; shown in sublet status.")] = "by hand",
) -> None:
    """Stop all evictions on this node, at once, until `sublet resume`.

    Needs neither the bus nor central, and holds through restarts. A pod that has already been told to end still ends.
    """
    from shared.adapters.files.pause import PauseFile
    from shared.errors import Unavailable
    from shared.settings import common_settings, raw_settings

    brake = PauseFile(common_settings(raw_settings()).state_dir)
    try:
        brake.set(reason)
    except OSError as error:
        raise Unavailable(f"{brake.path}: {error.strerror}; try it as root", reason="unwritable") from error
    typer.echo("evictions are paused on this node; go on with: sublet resume")


def resume() -> None:
    """Let this node evict again."""
    from shared.adapters.files.pause import PauseFile
    from shared.errors import Unavailable
    from shared.settings import common_settings, raw_settings

    brake = PauseFile(common_settings(raw_settings()).state_dir)
    try:
        was_paused = brake.release()
    except OSError as error:
        raise Unavailable(f"{brake.path}: {error.strerror}; try it as root", reason="unwritable") from error
    typer.echo("evictions go on" if was_paused else "evictions were not paused")
