"""Publish the events of one eviction that never was, to try a subscriber with a server of your own.

python pretend.py [--namespace default] [--pod batch-0] [--episode 1]        (SUBLET_NATS_URL; needs Sublet installed)

They say so, as those of a dry run do (`mode`, `ce-mode`): `sublet audit` counts them apart, and a subscriber that acts
on evictions leaves them out. The same arguments give the same event ids: run it twice and the stream, or your
subscriber, drops the second time.
"""

import argparse
import asyncio
import os
from datetime import UTC, datetime

import nats

from sublet.api.events import EVENTS_STREAM, MSG_ID, EvictionEvent, Phase, event_headers, event_subject, intent_id

URL = os.environ.get("SUBLET_NATS_URL", "nats://127.0.0.1:4222")
NODE = "pretended-node"
PHASES: tuple[Phase, ...] = ("intended", "created", "succeeded")


async def pretend(namespace: str, pod: str, episode: int) -> None:
    """One eviction, phase by phase, each stored before the next."""
    uid = f"{namespace}/{pod}".encode().hex()[-60:]
    client = await nats.connect(URL)
    for seq, phase in enumerate(PHASES):
        event = EvictionEvent(
            node=NODE,
            boot_id="00000000",
            seq=seq,
            sent_at=datetime.now(UTC),
            intent_id=intent_id(NODE, uid, "pretended", episode),
            namespace=namespace,
            pod=pod,
            pod_uid=uid,
            qos="reclaimed_cores",
            plugin="pretended",
            scope="memory",
            phase=phase,
            message="This eviction is pretended.",
            mode="dry-run",
        )
        headers = event_headers(event) | {MSG_ID: event.event_id}
        stored = await client.jetstream().publish(
            event_subject(event), event.encode(), stream=EVENTS_STREAM, headers=headers
        )
        print(f"{'dropped, known' if stored.duplicate else f'stored as {stored.seq}'}: {event.event_id}")
    await client.close()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--namespace", default="default")
    options.add_argument("--pod", default="batch-0")
    options.add_argument("--episode", type=int, default=1)
    asyncio.run(pretend(**vars(options.parse_args())))
