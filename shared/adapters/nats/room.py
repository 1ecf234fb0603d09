"""Central makes room in a stream that refuses new messages when it is full."""

import asyncio
import random
from collections.abc import Sequence

import structlog
from nats.js.api import StreamInfo
from nats.js.errors import NotFoundError

from shared import telemetry
from shared.adapters.nats.link import Link, unavailable
from shared.contracts.bus.subjects import StreamSpec
from shared.core.bus.stream_room import ENOUGH, FULL, Cut, Held, Weighed, cuts

log = structlog.get_logger()

AT_ONCE = 20
OVERHEAD_BYTES = 22
"""Bytes of a message in its file besides subject, headers and body."""


async def make_room(link: Link, spec: StreamSpec) -> Sequence[Cut]:
    """Drop the messages that must make room, and report them.

    Raises:
        Unavailable: the server cannot be asked.
    """
    with unavailable(f"room in stream {spec.name}"):
        try:
            info = await link.js.stream_info(spec.name)
        except NotFoundError:
            return ()
        limits = info.config
        held = Held(info.state.messages, info.state.bytes, limits.max_msgs or 0, limits.max_bytes or 0)
        telemetry.STREAM_MESSAGES.labels(spec.name).set(held.messages)
        telemetry.STREAM_BYTES.labels(spec.name).set(held.size_bytes)
        # The two gauges above are set on every call: operators watch them long before anything has to go.
        if held.level <= FULL:
            return ()
        found = cuts(held, await _sample(link, spec, info))
        for cut in found:
            subject = spec.of_node.format(cut.node) if cut.node else None
            await link.js.purge_stream(spec.name, subject=subject, keep=cut.keep)
            kind = "node" if cut.node else "oldest"
            telemetry.STREAM_CUTS.labels(spec.name, kind).inc()
            # A node that held too much is worth a look; that the oldest messages give way is what the limits are for.
            say = log.error if cut.node else log.info
            say("stream.cut", stream=spec.name, node=cut.node or None, keep=cut.keep, held_bytes=held.size_bytes)
        return found


async def _sample(link: Link, spec: StreamSpec, info: StreamInfo) -> list[Weighed]:
    first, last = info.state.first_seq, info.state.last_seq
    sequences = [random.randint(first, last) for _ in range(ENOUGH)]  # noqa: S311 - chosen by chance, not in secret
    found: list[Weighed] = []
    for start in range(0, ENOUGH, AT_ONCE):
        some = await asyncio.gather(*(_weigh(link, spec, s) for s in sequences[start : start + AT_ONCE]))
        found += [one for one in some if one is not None]
    return found


async def _weigh(link: Link, spec: StreamSpec, sequence: int) -> Weighed | None:
    try:
        raw = await link.js.get_msg(spec.name, seq=sequence)
    except NotFoundError:
        return None
    # `hdrs` is base 64, four characters for three bytes.
    size = len(raw.subject or "") + len(raw.data or b"") + len(raw.hdrs or "") * 3 // 4 + OVERHEAD_BYTES
    return Weighed(spec.node_of(raw.subject or ""), size)
