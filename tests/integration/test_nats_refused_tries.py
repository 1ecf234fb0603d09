"""A server that takes a client once and refuses it afterwards: what its tries leave open."""

import asyncio
from collections.abc import Awaitable, Callable

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect

INFO = b'INFO {"server_id":"x","version":"2.15.1","proto":1,"headers":true,"max_payload":1048576}\r\n'
REFUSED = b"-ERR 'Authorization Violation'\r\n"
Until = Callable[[Callable[[], bool]], Awaitable[None]]


async def test_the_connection_of_a_refused_try_is_closed_before_the_next_one(until: Until) -> None:
    refused: list[asyncio.StreamReader] = []
    taken: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(INFO)
        await reader.readuntil(b"PING\r\n")
        if taken:
            refused.append(reader)
            writer.write(REFUSED)
        else:
            taken.append(writer)
            writer.write(b"PONG\r\n")
        await reader.read()  # never closed from this side
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    bus = await connect(f"nats://127.0.0.1:{port}", name="test/node-a", connect_timeout_s=5, clock=SystemClock())
    taken[0].close()
    await until(lambda: len(refused) >= 3)
    await until(lambda: all(reader.at_eof() for reader in refused[:2]))
    await bus.drain()
    server.close()
    await server.wait_closed()
