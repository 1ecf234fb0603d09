"""Checks the ports of `sublet up` and the address of a given server before anything starts."""

import asyncio
import errno
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from shared.core.bus.nats_url import read_nats_url
from shared.errors import BadConfig, Refused, Unavailable

NATS_HOST = "127.0.0.1"
"""Where a server that is started here listens."""
LAST_PORT = 65535
MOST_PROCESSES = 7
"""The simulated machine and six services, each with a port behind the last one's."""
PATIENCE_S = 2.0
_CONNECT_TIMEOUT_S, _POLL_S = 1.0, 0.05
_TAKEN = "something listens there already"


@dataclass(frozen=True, slots=True)
class ListenPort:
    """A port that is about to be used."""

    option: str
    host: str
    port: int


def require_ports(nats_port: int, http_port: int) -> None:
    """Refuse ports that no machine has.

    Raises:
        Refused: names option, value and bounds.
    """
    if not 0 <= nats_port <= LAST_PORT:
        raise Refused(f"--nats-port {nats_port}: want 1 to {LAST_PORT}, or 0 for any free port", reason="option")
    last = LAST_PORT - MOST_PROCESSES + 1
    if not 0 <= http_port <= last:
        raise Refused(
            f"--http-port {http_port}: want 1 to {last}, for each process takes the next one up to {MOST_PROCESSES}, "
            "or 0 for none",
            reason="option",
        )


def require_server_url(url: str) -> None:
    """Refuse an address that is none of a NATS server.

    Raises:
        Refused: says what is wanted; a password is not repeated.
    """
    try:
        read_nats_url(url)
    except BadConfig as fault:
        raise Refused(f"--nats-url: {fault}", reason="option") from None


async def require_free(ports: Iterable[ListenPort], patience_s: float = PATIENCE_S) -> None:
    """Refuse ports on which something goes on to listen, or on which this user may not.

    Raises:
        Unavailable: names option, port and what to do.
    """
    deadline = asyncio.get_running_loop().time() + patience_s
    for one in ports:
        # What is left of a run that was killed lets go within a moment.
        while (why := _fault(one)) == _TAKEN and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_POLL_S)
        if why:
            raise Unavailable(
                f"{one.option}: port {one.port} of {one.host} cannot be used: {why}; choose another one, or 0",
                reason="port",
            )


def _fault(one: ListenPort) -> str:
    """Why nobody can listen there now; "" where it is free."""
    family = socket.AF_INET6 if ":" in one.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((one.host, one.port))
        except OSError as error:
            return _TAKEN if error.errno == errno.EADDRINUSE else str(error.strerror or error).lower()
    return ""


async def answers(url: str) -> bool:
    """Whether something listens at one of a NATS server's addresses."""
    for server in read_nats_url(url).servers:
        host, _, port = server.partition("://")[2].rpartition(":")
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        except (OSError, TimeoutError):
            continue
        writer.close()
        return True
    return False
