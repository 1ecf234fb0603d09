"""A connection that a NetworkPolicy forbids, from a pod that it is about."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.errors import Unavailable
from sublet.doctor.node.facts import PolicySeen
from sublet.doctor.node.policy_probe import seen_policy

HERE = "127.0.0.1"


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[int]:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), HERE, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


def closed_port() -> int:
    with socket.create_server((HERE, 0)) as found:
        return int(found.getsockname()[1])


async def test_what_is_open_and_what_is_not_is_seen(tmp_path: Path) -> None:
    pod = tmp_path / "namespace"
    pod.write_text("sublet-system\n")
    async with listening() as port:
        for leaves, clients in ((port, port), (port, closed_port()), (closed_port(), closed_port())):
            seen = await seen_policy(pod, HERE, leaves, clients)
            assert seen == PolicySeen(HERE, allowed=leaves == port, forbidden=clients == port)


async def test_who_is_in_no_pod_cannot_try(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="agent's pod"):
        await seen_policy(tmp_path / "namespace")
