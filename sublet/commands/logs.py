"""`sublet logs`: what a detached pod has written."""

from typing import Annotated

import typer

from sublet.completion.names import complete_pod


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(logs)


def logs(
    name: Annotated[str, typer.Argument(autocompletion=complete_pod, help="Name of the pod, or namespace/name.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the pod has ended.")] = False,
    container: Annotated[str, typer.Option("--container", "-c", help="Needed where a pod has several.")] = "",
    tail: Annotated[int | None, typer.Option(min=0, metavar="LINES", help="Only the last lines.")] = None,
    since: Annotated[str, typer.Option(hidden=True)] = "",
    previous: Annotated[bool, typer.Option("--previous", "-p", hidden=True)] = False,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="For a name without one.")] = "default",
) -> None:
    """Print a pod's standard output and error. A foreground pod has none: it writes to its terminal."""
    import sys

    from shared.adapters.local.log import log_of, read_on
    from shared.adapters.local.runtime import open_runtime
    from shared.errors import Refused
    from sublet.instance import writable_settings

    if since:
        raise Refused("--since: a pod's log keeps its words as they were written, without times; use --tail LINES",
                      reason="option")  # fmt: skip
    if previous:
        raise Refused("--previous: a pod here is started once; its log is there until a new pod gets its name: leave "
                      "it out", reason="option")  # fmt: skip
    runtime = open_runtime(writable_settings())
    runtime.reconcile()
    stored = runtime.pods.find(name, namespace)
    path = log_of(stored, container)
    for piece in read_on(runtime.pods, stored.record.pod.uid, path, follow=follow, tail_lines=tail):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
