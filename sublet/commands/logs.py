"""`sublet logs`: what a detached pod has written."""

from typing import TYPE_CHECKING, Annotated

import typer

from sublet.completion.names import complete_pod

if TYPE_CHECKING:
    from datetime import datetime


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(logs)


def logs(
    name: Annotated[str, typer.Argument(autocompletion=complete_pod, help="Name of the pod, or namespace/name.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the pod has ended.")] = False,
    container: Annotated[str, typer.Option("--container", "-c", help="Needed where a pod has several.")] = "",
    tail: Annotated[int | None, typer.Option(min=0, metavar="LINES", help="Only the last lines.")] = None,
    since: Annotated[str, typer.Option(metavar="5m|TIME", help="Only lines of the last 30s, 5m, 2h, 7d.")] = "",
    since_time: Annotated[str, typer.Option(metavar="TIME", help="Only lines since an RFC 3339 time.")] = "",
    previous: Annotated[
        bool, typer.Option("--previous", "-p", help="The log of the pod that had this name before.")
    ] = False,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Before each line when it was written.")] = False,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="For a name without one.")] = "default",
) -> None:
    """Print a pod's standard output and error. A foreground pod has none: it writes to its terminal.

    Times are those at which a line was seen in the log, half a second after it was written at most. Of a pod whose
    name a new one has taken, the last 8 MiB stay until the next one takes it.
    """
    import sys

    from shared.adapters.local.log import LogChoice, log_of, read_log, runs_on
    from shared.adapters.local.runtime import open_runtime
    from shared.errors import Refused
    from sublet.instance import writable_settings

    if not name.rpartition("/")[2]:
        raise Refused(f"logs: {name!r}: want the name of a pod, as pod/web", reason="name")
    choice = LogChoice(tail, _since(since, since_time), timestamps)
    runtime = open_runtime(writable_settings())
    runtime.reconcile()
    stored = runtime.pods.find(name, namespace)
    path, uid = log_of(stored, container, previous=previous), stored.record.pod.uid
    for piece in read_log(path, choice, lambda: follow and not previous and runs_on(runtime.pods, uid)):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _since(since: str, since_time: str) -> "datetime | None":
    from datetime import UTC, datetime

    from shared.errors import Refused
    from sublet.timespec import parse_timespec

    if since and since_time:
        raise Refused("--since and --since-time: both say where to begin; say one of them", reason="option")
    for option, text in (("--since", since), ("--since-time", since_time)):
        if text:
            try:
                return parse_timespec(text, datetime.now(UTC))
            except Refused as refusal:
                raise Refused(f"{option}: {refusal}", reason="no_time") from None
    return None
