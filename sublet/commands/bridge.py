"""`sublet bridge`: eviction events to an HTTP endpoint, or to the Events of Kubernetes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from sublet.bridge.bridge import Post

KUBERNETES = "kubernetes"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(bridge)


def bridge(
    to: Annotated[
        str,
        typer.Option("--to", metavar="URL|kubernetes", help="Where every event is POSTed; or the API server's Events."),
    ],
    secret_file: Annotated[
        Path | None, typer.Option(help="File with whsec_<base64>: requests are signed (Standard Webhooks).")
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only pods of this namespace.")] = "",
    phase: Annotated[str, typer.Option(help="Only this phase: intended, created, succeeded, failed, …")] = "",
    name: Annotated[str, typer.Option(help="Its place in the stream is kept under this name.")] = "",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="For --to kubernetes: whose API server; by default that of this pod's cluster.")
    ] = None,
) -> None:
    """Deliver eviction events in order, each until it is taken: over HTTP as CloudEvents, or as Events of Kubernetes.

    Begins with the oldest event in the stream and goes on, after a restart, behind the last one that was done with. An
    event may come twice; its ce-id tells. Trouble (5xx, 429, no answer) is tried again for ever, a refusal (other 4xx)
    is put aside into a file and passed over, 410 ends the bridge.
    """
    from shared.adapters.clock import SystemClock
    from shared.contracts.subjects import event_filter
    from shared.errors import Refused
    from shared.ports import Bus
    from shared.settings import common_settings, raw_settings
    from sublet.ask import Target, run
    from sublet.bridge.bridge import Bridge, WantsNoMore
    from sublet.bridge.place import Place
    from sublet.bridge.request import read_secret

    if to != KUBERNETES and not to.startswith(("http://", "https://")):
        raise Refused(
            f"--to {to!r}: want an address that begins with http:// or https://, or {KUBERNETES}", reason="option"
        )
    try:
        key = read_secret(secret_file.read_text()) if secret_file else None
    except OSError as error:
        raise Refused(f"--secret-file {secret_file}: {error.strerror}", reason="option") from error
    folder = common_settings(raw_settings()).state_dir / "bridges"
    place = Place(folder, name or (KUBERNETES if to == KUBERNETES else "webhook"))
    wanted = event_filter(phase=phase or "*", namespace=namespace.replace(".", "_") or "*")

    async def deliver(bus: Bus, _where: Target) -> int:
        async with _receiver(to, kubeconfig) as post:
            try:
                await Bridge(bus, SystemClock(), post, place, key, typer.echo).run(wanted)
            except WantsNoMore as error:
                typer.echo(f"sublet bridge: {error}", err=True)
        return 1

    run(deliver)


def _receiver(to: str, kubeconfig: Path | None) -> "AbstractAsyncContextManager[Post]":
    if to == KUBERNETES:
        from shared.adapters.clock import SystemClock
        from shared.adapters.kube_client import Kube
        from sublet.bridge.kube_events import posting_events

        return posting_events(Kube(kubeconfig), SystemClock())
    from sublet.bridge.http import posting

    return posting(to)
