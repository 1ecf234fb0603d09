"""Ports of the controller of lost nodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.central.core.lost_nodes.verdict import Judged
from services.central.core.objects.companions import CompanionSeen
from services.central.core.objects.nodes import NodeSeen
from services.central.core.view.cluster_view import ClusterView
from shared.contracts.pod import Pod


class NodeMarker(Protocol):
    """Marks a lost node. Each method raises SubletError where it could not be written."""

    async def withdraw(self, node: NodeSeen, judged: Judged) -> None:
        """Take from sale what a node offers."""
        ...

    async def taint(self, cnr: CompanionSeen, judged: Judged, *, lost: bool) -> None:
        """Set the taint of a lost node, or take it away."""
        ...


class ConditionWriter(Protocol):
    """Writes what each CNR says about its node's agent."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Why the newest try failed, by node."""
        ...

    def forget(self) -> None:
        """Compare all of them again, as after another one has led."""
        ...

    async def write_changed(self, view: ClusterView) -> None:
        """Bring the CNRs to the verdicts.

        Raises:
            Unavailable: the API server is away, or another one leads.
        """
        ...

    async def write_one(self, view: ClusterView, name: str) -> bool:
        """One CNR; whether something had to be written.

        Raises:
            SubletError: it could not be written, or another one leads.
        """
        ...


class ReclaimedPods(Protocol):
    """The reclaimed pods of the few nodes that may lose some."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Why the pods of a node could not be read, by node."""
        ...

    async def read(self, nodes: Sequence[str]) -> None:
        """Read the reclaimed pods of these nodes, and forget all others; a node that cannot be read has no known
        pods.

        Raises:
            Unavailable: the API server is away, or another one leads.
        """
        ...

    def agent_lives(self, node: str) -> bool:
        """Whether an agent's pod was ready there when the pods were read."""
        ...

    def staying(self, node: str) -> list[Pod]:
        """Those that are not on their way out."""
        ...

    def under_way(self, node: str) -> list[str]:
        """Keys of those that are."""
        ...


class PodEvictions(Protocol):
    """Evicts pods of lost nodes: intent, action, event."""

    async def evict(self, node: str, pod: Pod, objection: Callable[[Pod], str]) -> None:
        """Announce, ask for an objection, evict, publish.

        Raises:
            SubletError: the intent could not be stored, or another one leads; then nothing is done.
        """
        ...

    async def report_gone(self) -> None:
        """Publish which pods are gone now."""
        ...

    def state(self) -> list[dict[str, str]]:
        """The newest evictions, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class NodePorts:
    """What the controller of lost nodes acts with."""

    marks: NodeMarker
    conditions: ConditionWriter
    pods: ReclaimedPods
    evictions: PodEvictions
    paused: Callable[[str], str]
    """Why an operator has a node keep its pods, by its name; "" where nobody has."""
