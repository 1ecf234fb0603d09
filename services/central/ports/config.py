"""Ports of the controller of configuration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from services.central.core.objects.cnc import ConfigEntry
from services.central.core.objects.companions import CompanionSeen
from services.central.core.objects.nodes import NodeSeen
from services.central.core.rollout.config_documents import TargetSeen
from services.central.core.rollout.plan import ConfigSource
from services.central.core.slo.node_strategies import NodeStrategies
from shared.core.api_kind import ApiKind


class PerNodeWork(Protocol):
    """Work node by node, which may have failed for some nodes."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Why the newest try failed, by node."""
        ...

    @property
    def due_in_s(self) -> float | None:
        """Seconds until the next try of one that failed; None while none has."""
        ...


class CompanionWriter(PerNodeWork, Protocol):
    """Writes the companions of one kind."""

    async def write(self, nodes: Sequence[NodeSeen], there: Mapping[str, CompanionSeen]) -> None:
        """Bring them to the Nodes; writes only what differs. `there` is by name.

        Raises:
            Unavailable: the API server is away, or another one leads; what was done stays.
        """
        ...

    async def clear(self, nodes: Sequence[NodeSeen], there: Mapping[str, CompanionSeen]) -> None:
        """Delete those of Nodes that are gone.

        Raises:
            Unavailable: as `write`.
        """
        ...


class NodeEntryWriter(Protocol):
    """Writes the configuration of single nodes."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Why a node's entry cannot be as requested, by node; it keeps its content."""
        ...

    def forget(self) -> None:
        """Read everything again, because another central may have led."""
        ...

    async def write(
        self, wanted: Mapping[str, Mapping[str, ConfigSource]], slo: Mapping[str, NodeStrategies] | None = None
    ) -> None:
        """Write the entries by node from the sources of each kind; later kinds override earlier ones.

        `slo`: by node what the ConfigMap says, which all kinds override; None: it is not followed.

        Raises:
            SubletError: some could not be read or written; all others are done.
        """
        ...

    def applied(self, node: str, said: str | None) -> bool:
        """Return whether a node works with the configuration that it should have, by its own report."""
        ...


class ConfigObjectWriter(PerNodeWork, Protocol):
    """Writes CNCs, and the statuses of config objects.

    Each method raises SubletError where the API server is away or refuses, or another one leads.
    """

    async def delete_expired(self, kind: ApiKind, seen: TargetSeen) -> None:
        """Delete a temporary config object whose time has passed."""
        ...

    async def point(self, wanted: Mapping[str, Sequence[ConfigEntry]], there: Mapping[str, CompanionSeen]) -> None:
        """Make each node's CNC point to its entries, where it does not."""
        ...

    async def write_status(self, kind: ApiKind, key: tuple[str, str], status: Mapping[str, Any]) -> None:
        """Write an object's status; `key` is its namespace and name."""
        ...


class SloSource(Protocol):
    """Koordinator's ConfigMap, as it is now."""

    @property
    def failure(self) -> str:
        """Why it was never seen; "" once it was, there or not."""
        ...

    @property
    def refused(self) -> Mapping[str, str]:
        """Parts that are not in force, and why."""
        ...

    @property
    def ignored(self) -> list[str]:
        """Parts that Sublet does not read, and values that no setting accepts."""
        ...

    def of(self, labels: Mapping[str, str]) -> NodeStrategies:
        """Return what it says about a node with these labels."""
        ...


@dataclass(frozen=True, slots=True)
class ConfigPorts:
    """What the controller of configuration writes with."""

    companions: Mapping[ApiKind, CompanionWriter]
    entries: NodeEntryWriter
    objects: ConfigObjectWriter
    applied: Callable[[str], str | None]
    """Return the hash of the configuration that a node reports."""
    slo: SloSource | None = None
    """None: Koordinator's ConfigMap is not followed."""
