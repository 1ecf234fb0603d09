"""The mirrors of API objects that the controllers read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from services.central.core.objects.companions import CompanionSeen
from services.central.core.objects.nodes import AgentSeen, LeaseSeen, NodeSeen, lease_of
from services.central.core.rollout.config_documents import KccSeen, TargetSeen
from services.central.core.slo.config_map import SloConfigMap
from shared.ports import ObjectMirror


@dataclass(slots=True)
class SeenChanges:
    """Counts the changes of Nodes, CustomNodeResources and agents' pods: what was made of them holds until the next."""

    count: int = 0

    def add(self) -> None:
        """One more."""
        self.count += 1


class RenewedLeases:
    """Notes the leases of kubelets as they are read: a second renews a tenth of them, and a pass needs no others."""

    def __init__(self) -> None:
        self._news: dict[str, LeaseSeen] = {}

    def read(self, document: Mapping[str, Any]) -> LeaseSeen:
        """A lease of its document, which is noted."""
        lease = lease_of(document)
        self._news[lease.node] = lease
        return lease

    def pop_news(self) -> Collection[LeaseSeen]:
        """Return the newest of each node that was read since the last call."""
        news, self._news = self._news, {}
        return news.values()


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
    renewals: RenewedLeases
    """Of `leases`."""
    changes: SeenChanges
    """Of `nodes`, `cnrs` and `agents`."""
    slo: ObjectMirror[SloConfigMap] | None = None
    """Koordinator's ConfigMap; None: it is not followed."""

    @property
    def every(self) -> list[ObjectMirror[Any]]:
        """All of them, to be run."""
        return [*self.configured, *self.alive, *([] if self.slo is None else [self.slo])]

    @property
    def configured(self) -> list[ObjectMirror[Any]]:
        """Return what a pass over configuration and companions needs."""
        return [self.nodes, self.cnrs, self.cncs, self.kccs, *self.targets.values()]

    @property
    def alive(self) -> list[ObjectMirror[Any]]:
        """Return what shows whether a node is alive."""
        return [self.agents, self.leases]
