"""A server that refuses who was connected before: what the tries leave open, and what is said when it is for good."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from fixture_types import Until
from nats.aio.client import Client

from shared.adapters.clock import SystemClock
from shared.adapters.nats import link
from shared.adapters.nats.bus import NatsBus, connect, connect_at_once
from shared.adapters.nats.embedded.server import NatsServer
from shared.errors import NotStored, Unavailable
from shared.ports import DurableMessage

INFO = b'INFO {"server_id":"x","version":"2.15.1","proto":1,"headers":true,"max_payload":1048576}\r\n'
REFUSED = b"-ERR 'Authorization Violation'\r\n"


async def new_client(url: str) -> NatsBus:
    return await connect(url, name="test/node-a", connect_timeout_s=5, clock=SystemClock())


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
    bus = await new_client(f"nats://127.0.0.1:{port}")
    taken[0].close()
    await until(lambda: len(refused) >= 3)
    await until(lambda: all(reader.at_eof() for reader in refused[:2]))
    await bus.drain()
    server.close()
    await server.wait_closed()


@contextlib.asynccontextmanager
async def refused_at_once() -> AsyncIterator[list[asyncio.StreamReader]]:
    """The connections of a login that is tried once, at a server that refuses it and closes nothing itself."""
    refused: list[asyncio.StreamReader] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        refused.append(reader)
        writer.write(INFO)
        await reader.readuntil(b"PING\r\n")
        writer.write(REFUSED)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(Unavailable, match="login"):
        await connect_at_once(f"nats://127.0.0.1:{port}", name="test", timeout_s=5, clock=SystemClock())
    yield refused
    server.close()
    await server.wait_closed()


async def test_a_command_that_is_refused_leaves_no_connection_open(until: Until) -> None:
    async with refused_at_once() as refused:
        await until(lambda: refused and all(reader.at_eof() for reader in refused))


async def test_a_refused_try_that_is_given_up_in_the_middle_of_its_end_leaves_no_connection_open(
    monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    flush = Client._flush_pending

    async def never_done_at_the_end(client: Client) -> None:
        await flush(client)
        if client.is_closed:
            await asyncio.Event().wait()

    monkeypatch.setattr(Client, "_flush_pending", never_done_at_the_end)
    async with refused_at_once() as refused:
        await until(lambda: refused and all(reader.at_eof() for reader in refused))


async def test_a_server_that_greets_slowly_is_waited_for_longer_with_each_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CONNECT_BASE_S", 0.01)
    allowed_s: list[float] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        allowed_s.append(one.client.options["connect_timeout"])
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            if len(allowed_s) > 4:  # a server that gets its turn only then
                writer.write(INFO)
                await reader.readuntil(b"PING\r\n")
                writer.write(b"PONG\r\n")
            await reader.read()
        writer.close()

    slow = await asyncio.start_server(serve, "127.0.0.1")
    one = link.Link(f"nats://127.0.0.1:{slow.sockets[0].getsockname()[1]}", name="test", clock=SystemClock())
    await one.open(20)
    assert one.connected
    assert allowed_s[:5] == [0.01, 0.02, 0.04, 0.08, 0.16]
    await one.drain()
    slow.close()
    await slow.wait_closed()


async def test_a_client_that_has_stopped_trying_counts_as_closed(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "TRYING_CHECK_S", 0.02)
    bus = await new_client(server.url)

    async def fault(_server: object) -> None:
        raise RuntimeError("no error that the client expects")

    monkeypatch.setattr(bus._link.client, "_connect_to_server", fault)
    server.kill()
    assert await bus.wait_closed() == "the client has stopped trying to connect: no error that the client expects"
    await bus.drain()


async def test_a_client_that_the_server_turns_away_for_good_says_why(server: NatsServer, until: Until) -> None:
    bus = await new_client(server.url)
    closed = asyncio.create_task(bus.wait_closed())
    await bus._link.client._process_err("'maximum connections exceeded'")  # the client closes on any such word
    assert "maximum connections exceeded" in await closed
    assert not bus.connected
    with pytest.raises(NotStored, match="closed"):
        await bus.publish_durable(DurableMessage("x", b"", msg_id="1"))
