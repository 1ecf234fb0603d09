"""Append eviction events to a file: one JSON line each, each event once.

python consumer.py FILE        (SUBLET_NATS_URL, SUBLET_NAMESPACE, SUBLET_DURABLE: see ../README.md)
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO

import nats
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig

URL = os.environ.get("SUBLET_NATS_URL", "nats://127.0.0.1:4222")
NAMESPACE = os.environ.get("SUBLET_NAMESPACE", "*")
DURABLE = os.environ.get("SUBLET_DURABLE", "example-python")
STREAM = "SUBLET_EVENTS"
ID = re.compile(r"[0-9a-f-]{36}/[a-z]+/[0-9]+")
FILTER = f"sublet.cluster.v1.event.eviction.*.{NAMESPACE.replace('.', '_')}.*"
# One unacknowledged message at a time keeps the order over a crash; without a limit of deliveries none is given up.
NEW = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, ack_wait=30, max_ack_pending=1, max_deliver=-1)


def key(line: dict[str, Any]) -> str:
    """What makes an event known: any node may write another one's id, but each publishes on subjects of its own."""
    return f"{line['node']}/{line['id']}"


def open_log(path: Path) -> tuple[BinaryIO, set[str]]:
    """The file and the events in it. A line that a crash cut short is removed: its event was not acknowledged."""
    path.touch()
    lines = path.read_bytes()
    whole = lines[: lines.rfind(b"\n") + 1]
    log = path.open("ab")
    log.truncate(len(whole))
    return log, {key(json.loads(line)) for line in whole.splitlines()}


def record(message: Msg, log: BinaryIO, seen: set[str]) -> bool:
    """Do the work of one message, unless it was done before; False for what is no event."""
    headers, node = message.headers or {}, message.subject.rpartition(".")[2]
    try:
        line = {"id": headers["ce-id"], "node": node, "type": headers["ce-type"], "data": json.loads(message.data)}
        if not ID.fullmatch(line["id"]) or line["data"]["node"].replace(".", "_") != node:
            raise ValueError("another node's, or no id of an event")
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        print(f"not an event, put aside: {message.subject!r}: {error!r}", file=sys.stderr)
        return False
    if key(line) not in seen:
        try:
            log.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
            log.flush()
            os.fsync(log.fileno())
        except OSError as error:
            raise SystemExit(f"{log.name}: {error}") from error  # the next start repairs the file
        seen.add(key(line))
    return True


async def follow(stream: JetStreamContext, log: BinaryIO, seen: set[str]) -> None:
    """The durable's messages, one after the other: first the work, then the acknowledgement."""
    # Takes the durable as it is, and creates it where there is none.
    durable = await stream.pull_subscribe(FILTER, durable=DURABLE, stream=STREAM, config=NEW)
    try:
        while True:
            with contextlib.suppress(TimeoutError):  # nothing new
                for message in await durable.fetch(1, timeout=5):
                    await (message.ack() if record(message, log, seen) else message.term())
    finally:
        with contextlib.suppress(Error):
            await durable.unsubscribe()


async def complain(error: Exception) -> None:
    """What the connection meets; it is tried again all the same."""
    print(f"connection: {error}", file=sys.stderr)


async def run(path: Path) -> None:
    """Follow for ever, whatever happens to the server or to the login."""
    log, seen = open_log(path)
    client = None
    while True:
        try:
            if client is None or client.is_closed:  # for good: the server turned the login away
                client = await nats.connect(
                    URL, name=DURABLE, max_reconnect_attempts=-1, reconnect_time_wait=1, error_cb=complain
                )
            await follow(client.jetstream(), log, seen)
        except (Error, OSError) as error:
            print(f"again in a second: {error!r}", file=sys.stderr)
            await asyncio.sleep(1)


if __name__ == "__main__":
    # Nothing to tidy up: what is not acknowledged by then comes again, and is known by its id.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    asyncio.run(run(Path(sys.argv[1])))
