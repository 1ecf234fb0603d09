"""`sublet logs`: what a detached pod has written."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(logs)


def logs(
    name: Annotated[str, typer.Argument(help="Name of the pod, or namespace/name.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the pod has ended.")] = False,
    container: Annotated[str, typer.Option("--container", "-c", help="Needed where a pod has several.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="For a name without one.")] = "default",
) -> None:
    """Print a pod's standard output and error. A foreground pod has none: it writes to its terminal."""
    import sys

    from shared.adapters.local.log import log_of, read_on
    from shared.adapters.local.runtime import open_runtime
    from sublet.instance import writable_settings

    runtime = open_runtime(writable_settings())
    runtime.reconcile()
    stored = runtime.pods.find(name, namespace)
    for piece in read_on(runtime.pods, stored.record.pod.uid, log_of(stored, container), follow=follow):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
