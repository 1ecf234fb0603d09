"""The ports name what central's app and its controllers need of the world; `main` builds an adapter for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from services.central.core.heartbeats.readiness import Assessment, Ledger
from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.verdict import Judged
from services.central.core.objects.cnc import ConfigEntry
from services.central.core.objects.companions import CompanionSeen
from services.central.core.objects.nodes import AgentSeen, LeaseSeen, NodeSeen
from services.central.core.rollout.config_documents import KccSeen, TargetSeen
from services.central.core.rollout.plan import ConfigSource
from services.central.core.slo.config_map import SloConfigMap
from services.central.core.slo.node_strategies import NodeStrategies
from services.central.core.view.cluster_view import ClusterView
from shared.contracts.pod import Pod
from shared.core.api_kind import ApiKind
from shared.ports import ObjectMirror


class ConfigText(Protocol):
    """Where the configuration of all nodes is written by people."""

    @property
    def name(self) -> str:
        """Where that is, in words."""
        ...

    def changed(self) -> str | None:
        """The text when it has changed since the last call.

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
        """Make what is missing; whether all of it is there."""
        ...

    async def make_room(self) -> None:
        """Make room where it is needed; must not fail."""
        ...

    def conditions(self) -> list[dict[str, str]]:
        """The nodes that held too much of a stream lately."""
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

    @property
    def leading(self) -> bool:
        """Whether this one may write now, to the bus as to the API server."""
        ...

    async def run(self, begin: Callable[[], None]) -> None:
        """Work until cancelled; `begin` is called whenever this one begins to lead."""
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


@dataclass(frozen=True, slots=True)
class CentralPorts:
    """What the app works with; without a cluster nothing but bus and file is known."""

    config_text: ConfigText
    streams: StreamKeeper
    cluster: ClusterSide | None = None
    logins: LoginSide | None = None


@dataclass(frozen=True, slots=True)
class ClusterMirrors:
    """Everything that the controllers see of the API server's objects."""

    nodes: ObjectMirror[NodeSeen]
    cnrs: ObjectMirror[CompanionSeen]
    cncs: ObjectMirror[CompanionSeen]
    kccs: ObjectMirror[KccSeen]
    targets: Mapping[str, ObjectMirror[TargetSeen]]
    """Config objects, by the resource name of their kind."""
    agents: ObjectMirror[AgentSeen]
    leases: ObjectMirror[LeaseSeen]
    slo: ObjectMirror[SloConfigMap] | None = None
    """Koordinator's ConfigMap; None: it is not followed."""

    @property
    def every(self) -> list[ObjectMirror[Any]]:
        """All of them, to be run."""
        return [*self.configured, *self.alive, *([] if self.slo is None else [self.slo])]

    @property
    def configured(self) -> list[ObjectMirror[Any]]:
        """What a pass over configuration and companions needs."""
        return [self.nodes, self.cnrs, self.cncs, self.kccs, *self.targets.values()]

    @property
    def alive(self) -> list[ObjectMirror[Any]]:
        """What tells of a node's life."""
        return [self.agents, self.leases]


class PerNodeWork(Protocol):
    """Work node by node, of which the work on some may have failed."""

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
        """Why a node's entry cannot be what is asked for, by node; it keeps what it has."""
        ...

    def forget(self) -> None:
        """Read everything again: somebody else may have led."""
        ...

    async def write(
        self, wanted: Mapping[str, Mapping[str, ConfigSource]], slo: Mapping[str, NodeStrategies] | None = None
    ) -> None:
        """By node the sources of each kind, kinds in the order in which the later goes before the earlier.

        `slo`: by node what the ConfigMap says, over which all kinds go; None: it is not followed.

        Raises:
            SubletError: some could not be read or written; all others are done.
        """
        ...

    def applied(self, node: str, said: str | None) -> bool:
        """Whether what a node says that it works with is what it should work with."""
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
        """What of it is not in force, and why."""
        ...

    @property
    def ignored(self) -> list[str]:
        """What nobody here reads, and values that no setting takes."""
        ...

    def of(self, labels: Mapping[str, str]) -> NodeStrategies:
        """What it says of a node with these labels."""
        ...


@dataclass(frozen=True, slots=True)
class ConfigPorts:
    """What the controller of configuration writes with."""

    companions: Mapping[ApiKind, CompanionWriter]
    entries: NodeEntryWriter
    objects: ConfigObjectWriter
    applied: Callable[[str], str | None]
    """The hash of the configuration that a node says it works with."""
    slo: SloSource | None = None
    """None: Koordinator's ConfigMap is not followed."""


class NodeMarker(Protocol):
    """Marks a lost node. Each method raises SubletError where it could not be written."""

    async def withdraw(self, node: NodeSeen, judged: Judged) -> None:
        """Take from sale what a node offers."""
        ...

    async def taint(self, cnr: CompanionSeen, judged: Judged, *, lost: bool) -> None:
        """Set the taint of a lost node, or take it away."""
        ...


class ConditionWriter(Protocol):
    """Writes what each CNR says of its node's agent."""

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
            Unavailable: there was no answer, or another one leads.
        """
        ...


class ReclaimedPods(Protocol):
    """The reclaimed pods of the few nodes that may lose some."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Why the pods of a node could not be read, by node."""
        ...

    async def read(self, nodes: Sequence[str]) -> None:
        """Read the reclaimed pods of these nodes, and forget all others; of a node that cannot be read none is known.

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
