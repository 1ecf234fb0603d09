"""One node says offers as fast as it can, true ones, forged ones, broken ones and large ones: all others are heard."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from flood import flooding

from services.central.node_messages import MessageBounds, NodeMessages
from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.cluster.offer import MAX_OFFER_BYTES, OFFER_PERIOD_S, NodeOffer, ResourceAmounts
from shared.wire import Wire

pytestmark = pytest.mark.timeout(120)

HONEST = [f"honest-{number}" for number in range(100)]
SENT, BURST, PER_S = 50_000, 20, 2.0
BOUNDS = MessageBounds(MAX_OFFER_BYTES, OFFER_PERIOD_S, PER_S, BURST)
TRUE = (
    b'{"v":1,"node":"hostile","boot_id":"0123456789abcdef","seq":%d,"sent_at":"2026-01-01T00:00:00Z",'
    b'"reclaimed":{"cpu_millis":99000}}'
)
KINDS = [TRUE, TRUE.replace(b'"hostile"', b'"honest-1"'), b'{"pods":%d', b"%d" + b"x" * 200_000]


@pytest.fixture
def flood(nats_server: NatsServer, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that sends so many, and ends."""
    with flooding(tmp_path, nats_server.url, SENT, subject="sublet.cluster.v1.offer.hostile", kinds=KINDS) as process:
        yield process


async def test_every_other_node_is_heard_and_none_is_spoken_for(
    nats_server: NatsServer, flood: subprocess.Popen[bytes], until: Callable[[Callable[[], object]], Awaitable[None]]
) -> None:
    clock = SystemClock()
    bus, others = [await connect(nats_server.url, name=name, connect_timeout_s=20, clock=clock) for name in "ab"]
    heard: dict[str, list[NodeOffer]] = {}
    door = NodeMessages(
        NodeOffer, clock, BOUNDS, lambda offer, _s: heard.setdefault(offer.node, []).append(offer), service="central"
    )
    began_s = clock.monotonic()
    subscription = await door.listen(bus)
    try:
        senders = {name: Wire(others, clock, node=name, service="reporter") for name in HONEST}
        rounds = 0

        def heard_or_over() -> bool:
            return flood.poll() is not None or all(len(heard.get(name, ())) >= rounds for name in HONEST)

        while flood.poll() is None and rounds < BURST:  # more than a burst is refused
            for sender in senders.values():
                await sender.publish(sender.stamp(NodeOffer, reclaimed=ResourceAmounts(cpu_millis=1000)))
            rounds += 1
            await until(heard_or_over)
        await asyncio.to_thread(flood.wait)
        too_often = telemetry.REFUSED.labels("central", NodeOffer.kind, "too_often")
        most = BURST + PER_S * (clock.monotonic() - began_s) + 1
        await until(lambda: too_often._value.get() >= SENT - most)
        await until(lambda: set(HONEST) <= heard.keys())
        amounts = {offer.reclaimed.cpu_millis for name in HONEST for offer in heard[name] if offer.reclaimed}
        assert amounts == {1000}, "nobody was spoken for"
        assert len(heard.get("hostile", ())) <= BURST + PER_S * (clock.monotonic() - began_s) + 1
    finally:
        await subscription.stop()
        await asyncio.gather(bus.drain(), others.drain())
