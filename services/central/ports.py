"""What central needs beside the shared ports."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from services.central.core.heartbeats.readiness import Assessment, Ledger
from services.central.core.lost_nodes.rules import Rules
from services.central.core.objects.seen import NodeSeen


class ConfigText(Protocol):
    """Where the configuration of all nodes is written by people."""

    def changed(self) -> str | None:
        """The text when it has changed since the last call.

        Raises:
            BadConfig: it cannot be read.
        """
        ...


class LoginSide(Protocol):
    """Who answers the hub's questions about leaves that log in; every central does, leading or not."""

    @property
    def failure(self) -> str:
        """Why nobody would be answered; "" while somebody would."""
        ...

    async def run(self) -> None:
        """Work until cancelled."""
        ...

    async def close(self) -> None:
        """Answer nobody any more."""
        ...


class ClusterSide(Protocol):
    """What central does with an API server, where there is one."""

    on_lead: Callable[[], None]
    """Called when this one begins to lead."""

    @property
    def leading(self) -> bool:
        """Whether this one may write now, to the bus as to the API server."""
        ...

    async def run(self) -> None:
        """Work until cancelled."""
        ...

    def wake(self) -> None:
        """A node says something new of its configuration."""
        ...

    def nodes(self) -> Mapping[str, NodeSeen] | None:
        """The Nodes that there are, by name; None while that is not known."""
        ...

    def observe(self, ledger: Ledger, assessment: Assessment, rules: Rules, *, bus_well: bool) -> None:
        """What the bus tells of the nodes."""
        ...

    def failure(self) -> str:
        """Why it does not work; "" while it does."""
        ...

    def state(self) -> dict[str, Any]:
        """What explains it, as JSON values."""
        ...

    async def close(self) -> None:
        """Let another one take over."""
        ...
