"""Messages of `sublet consumers`: lines for people, documents for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from shared.adapters.nats.consumers import DurableState
from shared.contracts.bus.stored import RefusedMessage
from shared.contracts.bus.subjects import EVENTS_STREAM
from shared.contracts.eviction import EvictionEvent
from shared.core.bus.durable import Change, Durable, shown
from sublet.consumers.dead import DeadLetter
from sublet.consumers.login import Login
from sublet.output import age, columns

EXAMPLE = "examples/consumers/python/consumer.py"
NOT_KEPT = "not in the stream any more"


def added(durable: Durable, what: str, found: Sequence[Change], login: Login, nats_url: str) -> dict[str, Any]:
    """What a team needs: address, durable, filters, and a line to try it with."""
    address = login.address(nats_url)
    return {
        "name": durable.name,
        "stream": EVENTS_STREAM,
        "durable": what,
        "changed": [asdict(change) for change in found],
        "filters": list(durable.filters),
        "start": shown(durable.start),
        "ack_wait_s": durable.ack_wait_s,
        "max_deliver": durable.max_deliver,
        "address": address,
        "user": login.user,
        "password": login.password,
        "password_file": str(login.password_file) if login.password_file else None,
        "for_operator": login.for_operator,
        "try": f'SUBLET_NATS_URL="{address}" SUBLET_DURABLE={durable.name} python {EXAMPLE} {durable.name}.jsonl',
    }


def added_lines(told: Mapping[str, Any]) -> str:
    """The same for people."""
    name = told["name"]
    lines = [f"durable   {name} on {told['stream']}: {told['durable']}"]
    lines += [f"changed   {change['field']}: {change['now']} -> {change['wanted']}" for change in told["changed"]]
    lines += [f"filter    {subject}" for subject in told["filters"]]
    lines += [f"address   {told['address']}", f"password  {_password(told)}", f"try       {told['try']}"]
    if told["for_operator"]:
        lines += ["", "This server is not ours: its operator adds to its configuration", told["for_operator"]]
    return "\n".join(lines)


def _password(told: Mapping[str, Any]) -> str:
    again = f"a new one: sublet consumers rotate {told['name']}"
    if told["password_file"]:
        return f"in {told['password_file']}, for its owner alone; {again}"
    return f"in the address, shown this once; {again}" if told["password"] else f"as it was; {again}"


def listed(state: DurableState, dead: int, *, login: bool | None) -> dict[str, Any]:
    """One durable as a document; `login` None: not known."""
    durable = state.durable
    return {
        "name": durable.name,
        "filters": list(durable.filters),
        "start": shown(durable.start),
        "ack_wait_s": durable.ack_wait_s,
        "max_deliver": durable.max_deliver,
        "max_ack_pending": durable.max_ack_pending,
        "pending": state.pending,
        "unacknowledged": state.unacknowledged,
        "redelivered": state.redelivered,
        "oldest": state.oldest.isoformat() if state.oldest else None,
        "asking": state.asking,
        "dead_letters": dead,
        "login": login,
    }


def listed_table(found: Sequence[Mapping[str, Any]], now: datetime, *, wide: bool = False) -> str:
    """All of them as a table; oldest is the age of the first event without an acknowledgement.

    `wide`: how each is set too.
    """
    header = ("NAME", "PENDING", "UNACKED", "REDELIVERED", "OLDEST", "DEAD", "READING", "LOGIN", "FILTER")
    figures = ("pending", "unacknowledged", "redelivered")
    rows = [
        (
            one["name"],
            *(str(one[figure]) for figure in figures),
            age(datetime.fromisoformat(one["oldest"]) if one["oldest"] else None, now),
            str(one["dead_letters"]),
            "yes" if one["asking"] else "no",
            {True: "yes", False: "no", None: ""}[one["login"]],
            " ".join(one["filters"]),
            *(_set_as(one) if wide else ()),
        )
        for one in found
    ]
    return columns((*header, "FROM", "ACK WAIT", "MAX DELIVER") if wide else header, rows)


def _set_as(one: Mapping[str, Any]) -> tuple[str, str, str]:
    most = one["max_deliver"]
    return (one["start"], f"{one['ack_wait_s']:g}s", "" if most is None else str(most))


def buried(letter: DeadLetter) -> dict[str, Any]:
    """One dead letter as a document; the event's parts are null where the stream holds none, or `refused` says why."""
    said, event = letter.advisory, letter.event if isinstance(letter.event, EvictionEvent) else None
    return {
        "consumer": said.consumer,
        "sequence": said.sequence,
        "deliveries": said.deliveries,
        "given_up_at": said.given_up_at.isoformat(),
        "event_id": event.event_id if event else None,
        "subject": f"{event.namespace}/{event.pod}" if event else None,
        "happened_at": event.sent_at.isoformat() if event else None,
        "refused": str(letter.event) if isinstance(letter.event, RefusedMessage) else None,
    }


def buried_table(found: Sequence[Mapping[str, Any]]) -> str:
    """All of them as a table, and how one is read again."""
    header = ("CONSUMER", "SEQ", "DELIVERIES", "GIVEN UP", "HAPPENED", "POD", "EVENT")
    rows = [
        (one["consumer"], str(one["sequence"]), str(one["deliveries"]), one["given_up_at"][:19],
         (one["happened_at"] or "")[:19], one["subject"] or "", one["event_id"] or one["refused"] or NOT_KEPT)
        for one in found
    ]  # fmt: skip
    if not rows:
        return "no dead letters"
    return f"{columns(header, rows)}\nread one again: sublet events --since-seq SEQ --output cloudevents"
