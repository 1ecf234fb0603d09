"""`sublet audit`: is the history of evictions whole?"""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from shared.core.eviction_audit import Audit
    from shared.ports import Bus
    from sublet.ask import Target


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(
    output: Annotated[Literal["text", "json"], typer.Option("--output", "-o", help="text, or json")] = "text",
) -> None:
    """Check streams and ledger against each other: nothing lost, nothing doubled, nobody else evicted.

    Every eviction event in the stream, every intent, and this node's ledger where it can be read. Exit code 0 when
    the history is whole, 1 when it is not.
    """
    from shared.settings import common_settings, raw_settings
    from sublet.ask import run

    state_dir = common_settings(raw_settings()).state_dir

    async def check(bus: "Bus", _where: "Target") -> int:
        found = await audited(bus, state_dir)
        typer.echo(_as_json(found) if output == "json" else "\n".join(_lines(found)))
        return 0 if found.whole else 1

    run(check)


async def audited(bus: "Bus", state_dir: "Path") -> "Audit":
    """The audit of all that a bus and the ledger in a state folder hold.

    Raises:
        Unavailable: stream or ledger cannot be read.
        Refused: a message in a stream cannot be read.
    """
    from shared.adapters.ledger_reader import read_ledger
    from shared.contracts.cloudevents import read_event
    from shared.contracts.eviction import EvictionIntent
    from shared.contracts.subjects import EVENTS_STREAM, INTENTS_STREAM, event_filter
    from shared.core.eviction_audit import StoredEvent
    from shared.core.eviction_audit import audit as compare

    # The ledger first: what it has sent by now is in the stream when that is read.
    ledger = read_ledger(state_dir)
    events = [
        StoredEvent(received.sequence, read_event(received.headers, received.data))
        for received in await bus.replay(EVENTS_STREAM, event_filter())
    ]
    intents = [EvictionIntent.decode(r.data) for r in await bus.replay(INTENTS_STREAM, "sublet.cluster.v1.intent.>")]
    return compare(events, intents, ledger, first_sequence=events[0].sequence if events else 1)


def _lines(found: "Audit") -> list[str]:
    counts = (
        f"{found.events} events of {found.intents} evictions ({found.pods} pods); {found.open} not ended yet, "
        f"{found.waiting} messages wait to be sent"
    )
    if found.whole:
        return [counts, "the history is whole: nothing lost, nothing doubled, nobody else evicted"]
    return [counts, *(f"{fault.kind}: {fault.what}" for fault in found.faults)]


def _as_json(found: "Audit") -> str:
    import json
    from dataclasses import asdict

    return json.dumps({"whole": found.whole, **asdict(found)}, indent=2)
