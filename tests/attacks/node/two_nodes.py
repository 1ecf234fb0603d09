"""What a test has of two nodes on one hub."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bus_rights_rig import Hub
from nats.aio.client import Client

from shared.adapters.nats.bus import NatsBus

Until = Callable[[Callable[[], object]], Awaitable[None]]
"""The fixture that waits for a condition."""


@dataclass
class TwoNodes:
    """The hub, central's connection to it, node b's agent, and a client of node a's leaf, which a thief has."""

    hub: Hub
    central: NatsBus
    agent: NatsBus
    thief: Client
    thiefs_server: str
