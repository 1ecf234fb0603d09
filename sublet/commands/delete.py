"""`sublet delete`: end pods."""

from typing import Annotated

import typer

from sublet.completion.names import complete_pod


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(delete)


def delete(
    words: Annotated[
        list[str] | None,
        typer.Argument(autocompletion=complete_pod, metavar="[pod/NAME]...", help="Pods to end and forget."),
    ] = None,
    filenames: Annotated[
        list[str] | None, typer.Option("--filename", "-f", help="The pods of this file or folder; may be repeated.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All pods; with --namespace those of it.")] = False,
    selector: Annotated[str, typer.Option("--selector", "-l", help="Pods with these labels.")] = "",
    recursive: Annotated[bool, typer.Option("--recursive", "-R", help="Folders in folders too.")] = False,
    grace_period: Annotated[
        float | None, typer.Option(min=0, max=3600, help="Seconds between TERM and KILL; the pod's own if left out.")
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Of the pods; for a name default.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which pods, and end none.")] = False,
) -> None:
    """End pods. TERM to all their processes, KILL after the grace period, then their cgroups and records go.

    All names are looked up before the first pod is ended.
    """
    import asyncio

    from shared.adapters.local.runtime import open_runtime
    from sublet.instance import writable_settings
    from sublet.pods.choosing import chosen_pods
    from sublet.pods.deleting import DeleteRequest, choice_of

    request = DeleteRequest(
        tuple(words or ()), tuple(filenames or ()), selector, everything=everything, recursive=recursive
    )
    choice = choice_of(request, namespace)
    runtime = open_runtime(writable_settings())
    pods = chosen_pods(runtime, choice)
    for stored in pods:
        pod = stored.record.pod
        if not dry_run:
            asyncio.run(runtime.end(stored, pod.grace_s if grace_period is None else grace_period))
        typer.echo(f"pod/{pod.name} deleted{' (dry run)' if dry_run else ''}")
    if not pods:
        typer.echo("no pods are meant; nothing is deleted")
