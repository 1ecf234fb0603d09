"""`sublet delete`: end pods."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(delete)


def delete(
    names: Annotated[list[str], typer.Argument(metavar="pod/NAME...", help="Pods to end and forget.")],
    grace_period: Annotated[
        float | None, typer.Option(min=0, max=3600, help="Seconds between TERM and KILL; the pod's own if left out.")
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="For names without one.")] = "default",
) -> None:
    """End pods: TERM to all their processes, KILL after the grace period, then their cgroups and records go.

    All names are looked up before the first pod is ended.
    """
    import asyncio

    from shared.adapters.local.runtime import open_runtime
    from sublet.instance import writable_settings

    runtime = open_runtime(writable_settings())
    runtime.reconcile()
    for stored in [runtime.pods.find(name, namespace) for name in names]:
        pod = stored.record.pod
        asyncio.run(runtime.end(stored, pod.grace_s if grace_period is None else grace_period))
        typer.echo(f"pod/{pod.name} deleted")
