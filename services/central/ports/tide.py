"""Ports of the controller of tide pools."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from services.central.core.tide.edits import NodeEdit
from services.central.core.tide.pool import TidePoolSeen
from services.central.core.tide.seen import TideNodeSeen, TidePodSeen
from services.central.ports.decisions import DecisionLog
from services.central.ports.nodes import PodEvictions
from shared.contracts.pod import Pod
from shared.ports import ObjectMirror


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """A pod as the rules see it, and as it is evicted; None: its name is invalid."""

    seen: TidePodSeen
    pod: Pod | None


class TideWriter(Protocol):
    """Reads and writes nodes and pools; each method raises SubletError where the API server is away or refuses, or
    another central leads.
    """

    async def pods(self, node: str) -> Sequence[PodOnNode]:
        """Those on a node, as the API server has them now."""
        ...

    async def marked(self, pool: str) -> Sequence[TideNodeSeen]:
        """Nodes with a mark of this pool, as the API server has them now."""
        ...

    async def edit(self, node: TideNodeSeen, edit: Callable[[TideNodeSeen], NodeEdit]) -> bool:
        """Apply the edit to the current Node; return whether anything had to be written.

        Raises:
            Conflict: it was written in between; the next pass tries again.
        """
        ...

    async def set_finalizer(self, seen: TidePoolSeen, *, held: bool) -> None:
        """Have our finalizer at the pool, or not."""
        ...

    async def write_status(self, name: str, status: dict[str, Any]) -> None:
        """Write these fields of a pool's status."""
        ...


@dataclass(frozen=True, slots=True)
class TidePorts:
    """What the controller reads and works with."""

    pools: ObjectMirror[TidePoolSeen]
    nodes: ObjectMirror[TideNodeSeen]
    pods: ObjectMirror[TidePodSeen]
    writer: TideWriter
    evictions: PodEvictions
    decisions: DecisionLog
