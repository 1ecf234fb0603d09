"""What the bus has sent, the server has taken when the call returns, though the client's ping overtakes the rest.

The server here takes no more than it must: a PONG says that everything before the PING is taken, and nothing of what
stands behind it. A real one on a busy machine may do the same. What is not taken when the connection ends is lost, as
after a reset.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
from fixture_types import Until
from nats.aio.transport import TcpTransport

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect

INFO = b'INFO {"server_id":"lazy","version":"2.10.0","proto":1,"headers":true,"jetstream":true,"max_payload":1024}\r\n'
PING, PONG = b"PING\r\n", b"PONG\r\n"


class LazyServer(asyncio.Protocol):
    """One connection; `taken` is what the server knows, `unread` what has come after that."""

    def __init__(self) -> None:
        self.taken, self.unread = b"", b""
        self.asked = asyncio.Event()
        """A PING has come."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(INFO)

    def data_received(self, data: bytes) -> None:
        """Take everything up to the last PING, and answer each."""
        self.unread += data
        while PING in self.unread:
            before, _, self.unread = self.unread.partition(PING)
            self.taken += before
            self.asked.set()
            self._transport.write(PONG)


@pytest.fixture
async def server() -> AsyncIterator[tuple[LazyServer, int]]:
    lazy = LazyServer()
    listening = await asyncio.get_running_loop().create_server(lambda: lazy, "127.0.0.1", 0)
    yield lazy, listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()


@pytest.fixture
async def lazy(server: tuple[LazyServer, int]) -> LazyServer:
    return server[0]


@pytest.fixture
async def bus(server: tuple[LazyServer, int]) -> AsyncIterator[NatsBus]:
    clock = SystemClock()
    bus = await connect(f"nats://127.0.0.1:{server[1]}", name="reporter/a", connect_timeout_s=10, clock=clock)
    yield bus
    await bus.drain()


async def test_what_is_subscribed_the_server_knows(bus: NatsBus, lazy: LazyServer) -> None:
    await bus.subscribe("sublet.some.thing", lambda _received: None)
    assert b"SUB sublet.some.thing " in lazy.taken


async def test_what_is_sent_the_server_has_before_the_connection_ends(
    bus: NatsBus, lazy: LazyServer, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the connection is full the client writes nothing more, but a ping: that one is put in at once."""

    async def full(_transport: TcpTransport) -> None:
        await lazy.asked.wait()

    lazy.asked.clear()
    monkeypatch.setattr(TcpTransport, "drain", full)
    await bus.publish("sublet.some.thing", b"old")
    await until(lambda: b"old" in lazy.unread)
    await bus.publish("sublet.some.thing", b"news")
    await bus.drain()
    assert lazy.taken.endswith(b"PUB sublet.some.thing  3\r\nold\r\nPUB sublet.some.thing  4\r\nnews\r\n")
