"""Streams on servers that vote: made as soon as these agree."""

from dataclasses import replace

from until_met import until_met

from shared.adapters.nats.bus import NatsBus
from shared.contracts.bus.subjects import CONFIG_BUCKET, STREAMS
from shared.errors import Unavailable


async def make_streams(bus: NatsBus, replicas: int) -> None:
    """Make streams and bucket, with a first configuration, as soon as the servers agree on who leads each."""

    async def made() -> bool:
        try:
            for spec in STREAMS:
                await bus.ensure_stream(replace(spec, replicas=replicas))
            await bus.ensure_bucket(CONFIG_BUCKET, replicas=replicas)
            await bus.put(CONFIG_BUCKET, "global", b"{}")
        except Unavailable:
            return False
        return True

    await until_met(made, limit_s=60)
