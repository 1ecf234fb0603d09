"""`sublet bridge`: eviction events to an HTTP endpoint, or to the Events of Kubernetes."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shared.contracts.eviction_phases import Phase
from sublet.terminal.dry_run import DryRun

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from shared.ports import Bus, Clock
    from shared.settings import CommonSettings
    from sublet.bridge.bridge import Post

MAX_SECRET_BYTES = 64 << 10


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(bridge)


def bridge(
    to: Annotated[
        str,
        typer.Option("--to", metavar="URL|kubernetes", help="Where every event is POSTed; or the API server's Events."),
    ],
    secret_file: Annotated[
        str, typer.Option(metavar="FILE", help="File with whsec_<base64>: requests are signed (Standard Webhooks).")
    ] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only pods of this namespace.")] = "",
    phase: Annotated[Phase | None, typer.Option(help="Only this phase.")] = None,
    name: Annotated[str, typer.Option(help="Its place in the stream is kept under this name.")] = "",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="For --to kubernetes: whose API server; by default that of this pod's cluster.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Deliver eviction events in order, each until it is taken. Over HTTP as CloudEvents, or as Events of Kubernetes.

    Begins with the oldest event in the stream and goes on, after a restart, behind the last one that was done with. An
    event may come twice; its ce-id tells. Trouble (5xx, 429, no answer) is tried again for ever, a refusal (other 4xx)
    is put aside into a file and passed over, 410 ends the bridge. What is no event, or says that it is another node's,
    is put aside, too, and counted. To Kubernetes, each namespace waits for itself alone.
    """
    from shared.adapters.clock import SystemClock
    from shared.contracts.bus.subjects import EVENTS_STREAM, event_filter
    from shared.core.text.document import dns_name
    from shared.ports import Bus
    from shared.settings import common_settings, raw_settings
    from sublet.ask import AskTarget, run
    from sublet.bridge.address import KUBERNETES, require_address
    from sublet.bridge.bridge import Bridge, WantsNoMore
    from sublet.bridge.position import BridgePosition
    from sublet.bridge.request import read_secret
    from sublet.terminal.dry_run import dry
    from sublet.terminal.given_file import read_given_text
    from sublet.terminal.stderr import print_error

    require_address(to)
    if namespace:
        dns_name(namespace, "--namespace")
    secret = read_given_text(secret_file, what="--secret-file", max_bytes=MAX_SECRET_BYTES) if secret_file else ""
    key = read_secret(secret) if secret_file else None
    settings = common_settings(raw_settings())
    folder = settings.state_dir / "bridges"
    place = BridgePosition(folder, name or (KUBERNETES if to == KUBERNETES else "webhook"))
    wanted = event_filter(phase=phase or "*", namespace=namespace.replace(".", "_") or "*")

    async def deliver(bus: Bus, _where: AskTarget) -> int:
        if dry_run:
            done = place.sequence()
            waiting = [one for one in await bus.replay(EVENTS_STREAM, wanted) if one.sequence > done]
            typer.echo(dry(f"{len(waiting)} events after sequence {done} would be delivered to {to}, then new ones"))
            return 0
        clock = SystemClock()
        lane_of = (lambda event: event.namespace) if to == KUBERNETES else None
        async with _answering(bus, settings), _receiver(to, kubeconfig, key, clock) as post:
            try:
                await Bridge(bus, clock, post, place, typer.echo, lane_of).run(wanted)
            except WantsNoMore as error:
                print_error(error)
        return 1

    run(deliver)


@contextlib.asynccontextmanager
async def _answering(bus: "Bus", settings: "CommonSettings") -> "AsyncIterator[None]":
    """Answer probes and scrapes where the settings have a port for them."""
    from shared.adapters.health_http import HealthServer
    from shared.contracts.readiness import ServiceHealth

    server = HealthServer(healths=lambda: [ServiceHealth(service="bridge", ok=True)], connected=lambda: bus.connected)
    if settings.http_port:
        await server.start(settings.http_host, settings.http_port)
    try:
        yield
    finally:
        await server.close()


def _receiver(
    to: str, kubeconfig: Path | None, key: bytes | None, clock: "Clock"
) -> "AbstractAsyncContextManager[Post]":
    from sublet.bridge.address import KUBERNETES

    if to == KUBERNETES:
        from shared.adapters.kube.client import Kube
        from sublet.bridge.kube_events import posting_events

        return posting_events(Kube(kubeconfig), clock)
    from sublet.bridge.http import posting

    return posting(to, key, clock)
