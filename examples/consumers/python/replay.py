"""Print eviction events again, from a time or a sequence of the stream on, without leaving a trace at the server.

python replay.py [--hours 2 | --from-sequence 120] [--follow]        (SUBLET_NATS_URL, SUBLET_NAMESPACE)
"""

import argparse
import asyncio
import json
import os
import sys
from datetime import UTC, datetime, timedelta

import nats
from nats.js.api import ConsumerConfig, DeliverPolicy

URL = os.environ.get("SUBLET_NATS_URL", "nats://127.0.0.1:4222")
NAMESPACE = os.environ.get("SUBLET_NAMESPACE", "*")
STREAM = "SUBLET_EVENTS"
FILTER = f"sublet.cluster.v1.event.eviction.*.{NAMESPACE.replace('.', '_')}.*"


def beginning(hours: float | None, sequence: int | None) -> ConsumerConfig:
    """Where to begin; the oldest event that is kept when nothing is said."""
    if hours is not None:
        when = datetime.now(UTC) - timedelta(hours=hours)
        return ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_TIME, opt_start_time=when)
    if sequence is not None:
        return ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=sequence)
    return ConsumerConfig(deliver_policy=DeliverPolicy.ALL)


async def replay(config: ConsumerConfig, *, follow: bool) -> None:
    """The client asks again from the last one it has whenever it misses one: in order, without gaps."""
    client = await nats.connect(URL, max_reconnect_attempts=-1)
    events = await client.jetstream().subscribe(FILTER, stream=STREAM, ordered_consumer=True, config=config)
    info = await events.consumer_info()
    waiting = (info.num_pending or 0) + (
        info.delivered.consumer_seq if info.delivered else 0
    )  # some may be here already
    while follow or waiting:
        try:
            message = await events.next_msg(timeout=5)
        except TimeoutError:
            continue
        waiting = message.metadata.num_pending
        line = {"sequence": message.metadata.sequence.stream, "id": (message.headers or {}).get("ce-id")}
        try:
            print(json.dumps(line | {"data": json.loads(message.data)}), flush=True)
        except (ValueError, RecursionError) as error:
            print(f"not an event: {line}: {error!r}", file=sys.stderr)
    await client.close()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hours", type=float)
    options.add_argument("--from-sequence", type=int)
    options.add_argument("--follow", action="store_true")
    given = options.parse_args()
    asyncio.run(replay(beginning(given.hours, given.from_sequence), follow=given.follow))
