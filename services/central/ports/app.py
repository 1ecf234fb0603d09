"""Ports of central's app."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from services.central.core.heartbeats.readiness import Assessment, Ledger
from services.central.core.lost_nodes.rules import Rules
from services.central.core.objects.nodes import NodeSeen
from shared.ports import Bus


class ConfigText(Protocol):
    """Where the configuration of all nodes is written by people."""

    @property
    def name(self) -> str:
        """Where that is, in words."""
        ...

    def changed(self) -> str | None:
        """Return the text if it has changed since the last call.

        Raises:
            BadConfig: it cannot be read.
        """
        ...


class StreamKeeper(Protocol):
    """Keeps the streams of facts and the bucket of configuration."""

    @property
    def failure(self) -> str:
        """Why they are not there; "" while they are."""
        ...

    async def ensure(self, replicas: int | None) -> bool:
        """Create what is missing; return whether everything exists."""
        ...

    async def make_room(self) -> None:
        """Free space if necessary; must not fail."""
        ...

    def conditions(self) -> list[dict[str, str]]:
        """The nodes that held too much of a stream lately."""
        ...


class HeartbeatBus(Protocol):
    """A connection to the bus for what all nodes send, apart from the one for everything else."""

    async def get(self) -> Bus:
        """Return it as soon as it is connected."""
        ...

    async def close(self) -> None:
        """Leave it, where it was ever there."""
        ...


class LoginSide(Protocol):
    """Answers the hub's questions about leaf logins; every central does, leading or not."""

    @property
    def failure(self) -> str:
        """Why no question would be answered; "" if questions are."""
        ...

    async def run(self) -> None:
        """Work until cancelled."""
        ...

    async def close(self) -> None:
        """Stop answering."""
        ...


class ClusterSide(Protocol):
    """What central does with an API server, if there is one."""

    @property
    def leading(self) -> bool:
        """Whether this one may write now, to the bus as to the API server."""
        ...

    async def run(self, begin: Callable[[], None]) -> None:
        """Work until cancelled; `begin` is called whenever this one begins to lead."""
        ...

    def wake(self) -> None:
        """Notify of a node's new configuration state."""
        ...

    def nodes(self) -> Mapping[str, NodeSeen] | None:
        """The Nodes that there are, by name; None while that is not known."""
        ...

    def sent_ago_s(self, node: str, sent_at: datetime) -> float | None:
        """How long ago, at least, a node sent something, by its own clock; None: unknown."""
        ...

    def observe(self, ledger: Ledger, assessment: Assessment, rules: Rules, *, bus_well: bool) -> None:
        """Hand over what the bus says about the nodes."""
        ...

    def failure(self) -> str:
        """Why it does not work; "" while it does."""
        ...

    def state(self) -> dict[str, Any]:
        """Return its state as JSON values."""
        ...

    async def close(self) -> None:
        """Let another one take over."""
        ...


@dataclass(frozen=True, slots=True)
class CentralPorts:
    """What the app works with; without a cluster only bus and file."""

    config_text: ConfigText
    streams: StreamKeeper
    cluster: ClusterSide | None = None
    logins: LoginSide | None = None
    heartbeats: HeartbeatBus | None = None
    """None: heartbeats come over the connection of everything else, as on one host."""
