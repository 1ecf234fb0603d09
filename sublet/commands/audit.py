"""`sublet audit`: is the history of evictions whole?"""

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from sublet.terminal.formats import DOCUMENT, document_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from shared.contracts.bus.stored import RefusedMessage
    from shared.core.evictions.audit import Audit
    from shared.ports import Bus, Received
    from sublet.ask import AskTarget

R = TypeVar("R")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(output: Annotated[str, DOCUMENT.option] = "table") -> None:
    """Check that no eviction was lost, doubled or anybody else's. Streams and ledger are held against each other.

    Every eviction event in the stream, every intent, and this node's ledger where it can be read. Exit code 0 when
    the history is whole, 1 when it is not, 3 when stream or ledger cannot be read.
    """
    from sublet.ask import run
    from sublet.instance import instance_settings

    wanted = DOCUMENT.read(output)
    state_dir = instance_settings().state_dir

    async def check(bus: "Bus", _where: "AskTarget") -> int:
        found = await audited(bus, state_dir)
        typer.echo("\n".join(_lines(found)) if wanted.is_table else document_text(_document(found), wanted))
        return 0 if found.whole else 1

    run(check)


async def audited(bus: "Bus", state_dir: "Path", *, now: "datetime | None" = None) -> "Audit":
    """The audit of all that a bus and the ledger in a state folder hold; `now` in UTC, by default this machine's.

    Raises:
        Unavailable: stream or ledger cannot be read.
    """
    from datetime import UTC, datetime

    from shared.adapters.ledger.reader import read_ledger
    from shared.contracts.bus.stored import read_event, read_intent
    from shared.contracts.bus.subjects import EVENTS_STREAM, INTENTS_STREAM, event_filter
    from shared.core.evictions.audit import StoredEvent, StreamStart
    from shared.core.evictions.audit import audit as compare

    # The ledger first: what it has sent by now is in the stream when that is read. Intents last: each is older than
    # the events that tell of it.
    ledger = read_ledger(state_dir)
    told = await bus.replay(EVENTS_STREAM, event_filter())
    announced = await bus.replay(INTENTS_STREAM, "sublet.cluster.v1.intent.>")
    stored, no_events = _readable(told, lambda r: read_event(r.subject, r.headers, r.data))
    read, no_intents = _readable(announced, lambda r: read_intent(r.subject, r.data))
    events, intents = [StoredEvent(sequence, event) for sequence, event in stored], [intent for _, intent in read]
    now = now or datetime.now(UTC)
    kept = StreamStart(
        events=_kept_since(EVENTS_STREAM, told, [stored.event.sent_at for stored in events], now),
        intents=_kept_since(INTENTS_STREAM, announced, [intent.sent_at for intent in intents], now),
    )
    return compare(events, intents, ledger, kept=kept, unreadable=[*no_events, *no_intents])


def _readable(
    received: "Sequence[Received]", read: "Callable[[Received], R | RefusedMessage]"
) -> "tuple[list[tuple[int, R]], list[str]]":
    """What could be read with its sequence, and for each other message why not."""
    from shared.contracts.bus.stored import RefusedMessage

    found, bad = [], []
    for one in received:
        message = read(one)
        if isinstance(message, RefusedMessage):
            bad.append(f"{one.subject}, sequence {one.sequence}: {message.reason}: {message}")
        else:
            found.append((one.sequence, message))
    return found, bad


def _kept_since(stream: str, held: "Sequence[Received]", times: "Sequence[datetime]", now: "datetime") -> "datetime":
    """Since when the stream holds everything, as its limits are: by age, and by size once it is half full.

    A day less than its age, and an hour more than its oldest message: clocks of nodes differ, and what is told late
    was written earlier.
    """
    from datetime import timedelta

    from shared.contracts.bus.subjects import STREAMS

    (spec,) = (spec for spec in STREAMS if spec.name == stream)
    since = now - timedelta(seconds=spec.max_age_s) + timedelta(days=1)
    held_bytes = sum(len(one.data) + sum(len(k) + len(v) for k, v in one.headers.items()) for one in held)
    return max(since, min(times) + timedelta(hours=1)) if times and held_bytes > spec.max_bytes / 2 else since


def _lines(found: "Audit") -> list[str]:
    from sublet.output import printable

    counts = (
        f"{found.events} events of {found.intents} evictions ({found.pods} pods); {found.open} not ended yet, "
        f"{found.waiting} messages wait to be sent"
    )
    apart = f"apart from these: {found.rehearsed_events} events of {found.rehearsals} rehearsals, which evict nobody"
    rehearsed = [apart] if found.rehearsals else []
    if found.whole:
        return [counts, *rehearsed, "the history is whole: nothing lost, nothing doubled, nobody else evicted"]
    return [counts, *rehearsed, *(printable(f"{fault.kind}: {fault.what}") for fault in found.faults)]


def _document(found: "Audit") -> dict[str, Any]:
    from dataclasses import asdict

    return {"whole": found.whole, **asdict(found)}
