"""`seen_policy` attempts a connection that a NetworkPolicy forbids, to see whether policies are enforced."""

import asyncio
from pathlib import Path

from shared.errors import Unavailable
from sublet.doctor.node.facts import PolicySeen

NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
LEAVES, CLIENTS = 7422, 4222
"""Ports of the hub: an agent's pod is let in at the first and not at the second."""
WAIT_S = 3.0


async def seen_policy(
    namespace: Path = NAMESPACE, host: str = "", leaves: int = LEAVES, clients: int = CLIENTS
) -> PolicySeen:
    """Try both ports, from an agent's pod.

    Raises:
        Unavailable: this is none.
    """
    try:
        place = namespace.read_text().strip()
    except OSError as error:
        raise Unavailable("only an agent's pod can try it") from error
    host = host or f"sublet-bus.{place}.svc"
    # Both, as a control: where the allowed one is closed too, something else is in the way.
    allowed, forbidden = await asyncio.gather(_open(host, leaves), _open(host, clients))
    return PolicySeen(host, allowed=allowed, forbidden=forbidden)


async def _open(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(WAIT_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
