"""Say what the reporter needs of the world; `main` builds it."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.reporter.core.overcommit.kubelet_binding import ManagerStates
from shared.core.cpus.topology import Topology
from shared.ports import NodeWriter, Objects, Past


async def _nothing() -> None:
    """Nothing is to be closed."""


@dataclass(frozen=True, slots=True)
class SideTask:
    """A task that runs in the reporter's process because only that process has credentials of the API server."""

    run: Callable[[], Coroutine[Any, Any, None]] | None = None
    failure: Callable[[], str] = lambda: ""
    """Why it does not work; "" while it does."""
    close: Callable[[], Awaitable[None]] = _nothing


@dataclass(frozen=True, slots=True)
class ReporterPorts:
    """Where the node's object is written, and what runs next to the reporter."""

    writer: NodeWriter
    side_task: SideTask = field(default_factory=SideTask)
    seen: Callable[[], Mapping[str, Any] | None] | None = None
    """Return the Node as last read, None before the first read; absent if there is no API server."""
    withdrawn: Callable[[], bool] = lambda: False
    """Whether central has taken the node's resources from sale."""
    objects: Objects | None = None
    """Objects of the API server, to which the NodeMetric is written; None if there is no API server."""
    pods: Objects | None = None
    """The same under the field manager of what is written into pods."""
    managers: Callable[[], ManagerStates] | None = None
    """Checkpoints of kubelet's managers; None if there is no kubelet."""
    past: Past | None = None
    """The learned past of the pods' use; None: every run starts without one."""
    topology: Callable[[], Topology] | None = None
    """Reads the machine's CPUs; None: this node reports them to nobody."""
