"""`sublet events`: the evictions on this bus, past and to come."""

from typing import TYPE_CHECKING, Annotated

import typer

from shared.contracts.eviction_phases import Phase
from shared.contracts.mode import Mode
from sublet.terminal.formats import EVENTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from shared.ports import Bus, Received
    from sublet.terminal.formats import OutputFormat


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(events)


def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new events until Ctrl-C.")] = False,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only pods of this namespace.")] = "",
    phase: Annotated[Phase | None, typer.Option(help="Only this phase.")] = None,
    mode: Annotated[
        Mode | None, typer.Option(help="Only real evictions (enforce), or only rehearsals (dry-run).")
    ] = None,
    since: Annotated[
        str, typer.Option(metavar="2h|TIME", help="Only events of the last 30m, 2h, 7d, or since an RFC 3339 time.")
    ] = "",
    since_seq: Annotated[int, typer.Option(min=1, help="Begin at this sequence of the stream.")] = 1,
    output: Annotated[str, EVENTS.option] = "table",
) -> None:
    """Print eviction events from the stream. Phase, pod, message and the numbers behind them.

    Each is printed by itself, in every format: -o json prints one object a line.
    """
    from datetime import UTC, datetime

    from shared.contracts.bus.subjects import EVENTS_STREAM, event_filter
    from shared.core.text.document import dns_name
    from shared.errors import Refused
    from sublet.ask import AskTarget, run
    from sublet.timespec import parse_timespec
    from sublet.views import events as view

    form = EVENTS.read(output)
    try:
        begin = parse_timespec(since, datetime.now(UTC)) if since else None
    except Refused as refusal:
        raise typer.BadParameter(str(refusal), param_hint="--since") from None
    if namespace:
        dns_name(namespace, "--namespace")
    wanted = event_filter(phase=phase or "*", namespace=namespace.replace(".", "_") or "*")

    async def stored(bus: "Bus") -> "AsyncIterator[Received]":
        for received in await bus.replay(EVENTS_STREAM, wanted):
            if received.sequence >= since_seq:
                yield received

    async def show(bus: "Bus", _where: AskTarget) -> int:
        if form.is_table:
            typer.echo(view.head(form))
        source = bus.follow(EVENTS_STREAM, wanted, from_sequence=since_seq) if follow else stored(bus)
        shown = await _print_events(source, form, begin, mode)
        if not shown and form.is_table:
            filtered = bool(namespace or phase or mode or since or since_seq > 1)
            typer.echo(await _why_none(bus, filtered=filtered), err=True)
        return 0

    run(show)


async def _print_events(
    source: "AsyncIterator[Received]", output: "OutputFormat", begin: "datetime | None", mode: Mode | None
) -> int:
    """Print each message as it comes; how many events there were."""
    from shared.contracts.bus.stored import RefusedMessage
    from sublet.terminal.stderr import print_error
    from sublet.views import events as view

    shown = 0
    async for received in source:
        line = view.line(received, output, begin=begin, mode=mode)
        if isinstance(line, RefusedMessage):
            print_error(f"sequence {received.sequence} is {line.reason}: {line}")
        elif line:
            shown += 1
            typer.echo(line)
    return shown


async def _why_none(bus: "Bus", *, filtered: bool) -> str:
    """Why there is nothing to show: nobody was evicted, or the options leave nothing over."""
    from shared.contracts.bus.subjects import DAY_S, EVENTS_STREAM, STREAMS, event_filter

    held = len(await bus.replay(EVENTS_STREAM, event_filter())) if filtered else 0
    if held:
        return f"none of the {held} events in the stream fits --namespace, --phase, --mode, --since and --since-seq"
    (kept_s,) = (spec.max_age_s for spec in STREAMS if spec.name == EVENTS_STREAM)
    return f"the stream holds no event: nobody was evicted in the last {kept_s / DAY_S:.0f} days, or since it was made"
