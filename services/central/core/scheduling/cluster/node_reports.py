"""What is known of one node: its own messages on the bus, and its objects if it is silent."""

from dataclasses import dataclass

from services.central.core.lost_nodes.lost_node import CnrTaint
from services.central.core.overcommit.fit import KubeletBinding, OvercommittedNode, SoldNode
from services.central.core.scheduling.amounts import Amounts
from services.central.core.scheduling.cluster.pod_asks import PodSeen
from services.central.core.scheduling.load.expected_use import LoadReport
from services.central.core.scheduling.numa.machine import Machine


@dataclass(frozen=True, slots=True)
class SaidByNode:
    """What a node published on the bus; `heard_s` is our monotonic time."""

    heard_s: float
    offered: Amounts | None
    load: LoadReport | None
    wall_s: float = 0.0
    """When that was, by the clock that objects are stamped with."""
    machine: Machine | None = None
    """Its NUMA nodes, less what is bound to them; None: it does not say."""
    bound: frozenset[str] = frozenset()
    """UIDs of those that are."""

    def shows(self, pod: PodSeen, period_s: float) -> bool:
        """Whether the pod is bound here, or was not although there were two reports' time for it."""
        late = pod.assigned_at is not None and self.wall_s - pod.assigned_at > 2 * period_s
        return pod.uid in self.bound or late


@dataclass(frozen=True, slots=True)
class SchedulableNode:
    """A Node: what its pods may have of it, and our annotation on it."""

    name: str
    allocatable: Amounts
    offered: Amounts | None = None
    """Reclaimed resources; None: it offers them by no name."""
    refuses: str | None = None
    sold: SoldNode | None = None
    """Where it is over-committed."""


@dataclass(frozen=True, slots=True)
class OfferingCnr:
    """A CNR: who is kept away, and what the node offered when it was written."""

    name: str
    taints: tuple[CnrTaint, ...] = ()
    offered: Amounts | None = None
    binding: KubeletBinding | None = None


@dataclass(frozen=True, slots=True)
class MeasuredNode:
    """Koordinator's NodeMetric: what a node used."""

    name: str
    load: LoadReport


@dataclass(frozen=True, slots=True)
class NodeKnown:
    """All reports of a node; None for missing ones."""

    said: SaidByNode | None = None
    node: SchedulableNode | None = None
    cnr: OfferingCnr | None = None
    metric: MeasuredNode | None = None

    @property
    def overcommitted(self) -> OvercommittedNode | None:
        """Where CPUs or memory are bound and sold more than once; nothing is counted as requested yet."""
        if self.node is None or self.cnr is None or (sold := self.node.sold) is None or self.cnr.binding is None:
            return None
        binding = self.cnr.binding
        return OvercommittedNode(
            allocatable_cpu_millis=self.node.allocatable.get("cpu", 0),
            requested_cpu_millis=0,
            original_cpu_millis=sold.original_cpu_millis,
            guaranteed_cpus=binding.guaranteed_cpus,
            cpu=sold.cpu,
            memory=sold.memory,
            binds_cpus=binding.cpus,
            binds_memory=binding.memory,
        )

    def offered(self, *, fresh: bool) -> Amounts | None:
        """Return what reclaimed pods may take in total: by the node's own message while it is `fresh`, otherwise by
        its objects.

        The CNR has the whole offer; the Node shows less under one name if pods request under another. But when a lost
        node is withdrawn, 0 is written into the Node.
        """
        if fresh and self.said is not None and self.said.offered is not None:
            return self.said.offered
        shown = None if self.node is None else self.node.offered
        if self.cnr is None or self.cnr.offered is None:
            return shown
        withdrawn = {name for name, amount in (shown or {}).items() if not amount}
        return {name: 0 if name in withdrawn else amount for name, amount in self.cnr.offered.items()}

    def load(self, *, fresh: bool) -> LoadReport | None:
        """Return its use: by its own message while it is `fresh`, otherwise by the NodeMetric."""
        if fresh and self.said is not None and self.said.load is not None:
            return self.said.load
        return None if self.metric is None else self.metric.load
