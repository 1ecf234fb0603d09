"""`sublet events`: the evictions on this bus, past and to come."""

from typing import Annotated, Literal

import typer

from shared.contracts.eviction import Phase


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(events)


def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new events until Ctrl-C.")] = False,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only pods of this namespace.")] = "",
    phase: Annotated[Phase | None, typer.Option(help="Only this phase.")] = None,
    since: Annotated[
        str, typer.Option(metavar="2h|TIME", help="Only events of the last 30m, 2h, 7d, or since an RFC 3339 time.")
    ] = "",
    since_seq: Annotated[int, typer.Option(min=1, help="Begin at this sequence of the stream.")] = 1,
    output: Annotated[
        Literal["table", "json", "cloudevents"], typer.Option("--output", "-o", help="One line an event.")
    ] = "table",
) -> None:
    """Print eviction events from the stream: phase, pod, message and the numbers behind them."""
    from collections.abc import AsyncIterator
    from datetime import UTC, datetime

    from shared.contracts.bus.stored import RefusedMessage
    from shared.contracts.bus.subjects import EVENTS_STREAM, event_filter
    from shared.errors import Refused
    from shared.ports import Bus, Received
    from sublet.ask import AskTarget, run
    from sublet.terminal.stderr import print_error
    from sublet.timespec import parse_timespec
    from sublet.views import events as view

    try:
        begin = parse_timespec(since, datetime.now(UTC)) if since else None
    except Refused as refusal:
        raise typer.BadParameter(str(refusal), param_hint="--since") from None
    wanted = event_filter(phase=phase or "*", namespace=namespace.replace(".", "_") or "*")

    async def stored(bus: Bus) -> AsyncIterator[Received]:
        for received in await bus.replay(EVENTS_STREAM, wanted):
            if received.sequence >= since_seq:
                yield received

    async def show(bus: Bus, _where: AskTarget) -> int:
        if output == "table":
            typer.echo(view.HEAD)
        source = bus.follow(EVENTS_STREAM, wanted, from_sequence=since_seq) if follow else stored(bus)
        async for received in source:
            line = view.line(received, output, begin=begin)
            if isinstance(line, RefusedMessage):
                print_error(f"sequence {received.sequence} is {line.reason}: {line}")
            elif line:
                typer.echo(line)
        return 0

    run(show)
