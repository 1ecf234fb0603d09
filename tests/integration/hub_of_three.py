"""A hub of three servers as the overlay `ha` configures them, whose routes run through proxies that can be cut."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import nats
from bus_rights_rig import PASSWORD, ChartServer, Hub, free_port, hub_server, running
from present import present
from slow_machines import patience_s
from until_met import until_met

from shared.adapters.nats.bus import NatsBus
from shared.adapters.nats.embedded import server as embedded_server
from shared.contracts.bus.subjects import CONFIG_BUCKET, STREAMS
from shared.errors import Unavailable

NAMES = ("hub-0", "hub-1", "hub-2")
NOWHERE = 'advertise: "127.0.0.1:1"'
UP_S = 60.0
"""For three servers that vote, on a machine that others keep busy."""


class Route:
    """The way from one server to another; while it is cut nothing gets through, and nobody can connect."""

    def __init__(self, port: int, to: int) -> None:
        self.port, self._to = port, to
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._ways: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Let connections through, from now on; a route that is open stays as it is."""
        if self._server is None:
            self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)

    def cut(self) -> None:
        """End those that there are, and take no others."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for end in self._ends:
            end.transport.abort()

    async def closed(self) -> None:
        """Cut it, and wait until both ends of every connection are closed."""
        self.cut()
        await asyncio.gather(*self._ways)

    def _carry(self, there: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self._ends.add(back)
        if self._server is None:  # Cut between the moment it was accepted and this one.
            back.transport.abort()
        way = asyncio.create_task(self._carried(there, back))
        self._ways.add(way)
        way.add_done_callback(self._ways.discard)

    async def _carried(self, there: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        ends = [back]
        with contextlib.suppress(OSError):
            here, forth = await asyncio.open_connection("127.0.0.1", self._to)
            ends.append(forth)
            self._ends.add(forth)
            if not back.is_closing():
                # Either end that goes takes the other one along.
                both = [asyncio.create_task(_copy(there, forth)), asyncio.create_task(_copy(here, back))]
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                for one in both:
                    one.cancel()
        for end in ends:
            await _aborted(end)
            self._ends.discard(end)


async def _aborted(end: asyncio.StreamWriter) -> None:
    end.transport.abort()
    with contextlib.suppress(OSError):
        await end.wait_closed()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()


class HubOfThree:
    """The servers by name, and the routes between them."""

    def __init__(self, servers: Mapping[str, ChartServer], routes: Mapping[tuple[str, str], Route]) -> None:
        self.servers, self._routes = servers, routes
        self._hubs = {name: Hub(server) for name, server in servers.items()}

    async def client(self, at: str, name: str = "central/c") -> NatsBus:
        """A client of one of the servers, with central's rights."""
        return await self._hubs[at].client(f"central:{PASSWORD}", name)

    async def ready(self) -> None:
        """Make streams and bucket on all three, and wait until each has a leader."""
        bus = await self.client("hub-0", "central/maker")

        async def made() -> bool:
            with contextlib.suppress(Unavailable):
                for spec in STREAMS:
                    await bus.ensure_stream(replace(spec, replicas=3))
                await bus.ensure_bucket(CONFIG_BUCKET, replicas=3)
                return True
            return False

        await until_met(made, UP_S)
        await bus.drain()

    async def leader(self, stream: str, ask: str) -> str:
        """Who leads a stream, as one of the servers knows it; "" while nobody does."""
        try:
            client = await nats.connect(self._hubs[ask].url(f"central:{PASSWORD}"), connect_timeout=patience_s(5))
        except (OSError, nats.errors.Error):
            return ""
        try:
            info = await client.jetstream(timeout=patience_s(5)).stream_info(stream)
            return str(present(info.cluster).leader or "")
        except nats.errors.Error:
            return ""
        finally:
            await client.close()

    async def follower_of(self, stream: str) -> tuple[str, str]:
        """Leader and one of the others, as soon as there is a leader."""
        found = ""

        async def led() -> bool:
            nonlocal found
            found = await self.leader(stream, "hub-0")
            return found in NAMES

        await until_met(led, UP_S)
        return found, next(name for name in NAMES if name != found)

    def isolate(self, name: str) -> None:
        """Cut all routes from and to a server; its clients stay."""
        for ends, route in self._routes.items():
            if name in ends:
                route.cut()

    async def heal(self) -> None:
        """Open all routes that are cut."""
        for route in self._routes.values():
            await route.open()

    async def close(self) -> None:
        """Cut all routes, and wait until nothing of them is left."""
        for route in self._routes.values():
            await route.closed()


def _started_by(server: ChartServer, program: Path) -> None:
    """Have a server started by a program that puts it where its disk is."""
    start = server.start

    def started() -> None:
        with patch.object(embedded_server, "find_binary", lambda: program):
            start()

    server.start = started  # type: ignore[method-assign]


@contextlib.asynccontextmanager
async def hub_of_three(folder: Path, programs: Mapping[str, Path] | None = None) -> AsyncIterator[HubOfThree]:
    """Up, with streams on all three; `programs` start the servers of these names."""
    ports = {name: free_port() for name in NAMES}
    routes = {(here, there): Route(free_port(), ports[there]) for here in NAMES for there in NAMES if here != there}
    servers = {}
    for name in NAMES:
        ways = ",".join(f"127.0.0.1:{route.port}" for (here, _), route in routes.items() if here == name)
        env = {"POD_NAME": name, "ROUTES_PASSWORD": "r", "ROUTES": ways}
        # Servers tell each other where they are, and would find a way around the proxies.
        replaced = {"0.0.0.0:6222": f"127.0.0.1:{ports[name]}", "no_advertise: true": f"no_advertise: true\n{NOWHERE}"}
        servers[name] = hub_server(folder / name, env, replaced)
        servers[name].overlay = "ha"
        if programs and name in programs:
            _started_by(servers[name], programs[name])
    hub = HubOfThree(servers, routes)
    await hub.heal()
    try:
        with running(*servers.values()):
            await hub.ready()
            yield hub
    finally:
        await hub.close()
