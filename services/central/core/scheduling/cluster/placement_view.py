"""The cluster as one answer needs it: every node's state ready to be held against a pod."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Generic, TypeVar

from services.central.core.lost_nodes.lost_node import CnrTaint
from services.central.core.overcommit.fit import OvercommittedNode
from services.central.core.scheduling.amounts import Amounts
from services.central.core.scheduling.cluster.assigned_pods import AssignedPods, PodsOfNode
from services.central.core.scheduling.cluster.node_reports import (
    MeasuredNode,
    NodeKnown,
    OfferingCnr,
    SaidByNode,
    SchedulableNode,
)
from services.central.core.scheduling.cluster.pod_asks import MOST_ASKS, PodAsk, PodSeen
from services.central.core.scheduling.load.estimate import FACTORS, estimate
from services.central.core.scheduling.load.expected_use import Aggregate, AssignedPod, ExpectedUse, LoadReport
from services.central.core.scheduling.numa.binding import NumaBinding
from services.central.core.scheduling.numa.coming import with_coming
from services.central.core.scheduling.numa.machine import Machine
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY

BINDING = NumaBinding()
"""The agent binds pods here, and leaves the CPUs of shared pods to others."""
REPORT_S = 10.0
"""Between two messages of a node on which nothing changes."""
T = TypeVar("T", SchedulableNode, OfferingCnr, MeasuredNode)


@dataclass(frozen=True, slots=True)
class ViewRules:
    """How long a node's message counts, and how its pods are estimated."""

    said_max_age_s: float = 30.0
    factors: tuple[tuple[str, int], ...] = tuple(FACTORS.items())
    aggregate: Aggregate | None = None


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node, without the pods that are on their way to it."""

    name: str
    taints: tuple[CnrTaint, ...] = ()
    offered: Amounts | None = None
    requested: Amounts = field(default_factory=dict)
    """Of the offer, by the pods that were given the node."""
    allocatable: Amounts = field(default_factory=dict)
    load: LoadReport | None = None
    expected: ExpectedUse | None = None
    """Expected use of its pods; None: unknown."""
    machine: Machine | None = None
    """Its NUMA nodes with all bound pods that were given the node; None: it does not say."""
    overcommitted: OvercommittedNode | None = None
    """Where kubelet binds what is sold more than once, with the pods that were given the node."""
    until_s: float = float("inf")
    """When its own message expires, on our monotonic clock."""


class ByName(Generic[T]):
    """An index of a mirror by the names of its objects."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._uids: dict[str, str] = {}
        self._things: dict[str, T] = {}

    def put(self, uid: str, thing: T | None) -> str:
        """Record an object, or None if it was deleted; return the name concerned, or ""."""
        if thing is None:
            name = self._names.pop(uid, "")
            # By UID: a successor of the name may be there already.
            if self._uids.get(name) == uid:
                del self._uids[name], self._things[name]
            return name
        self._names[uid], self._uids[thing.name], self._things[thing.name] = thing.name, uid, thing
        return thing.name

    def get(self, name: str) -> T | None:
        """The object of this name."""
        return self._things.get(name)

    @property
    def things(self) -> Mapping[str, T]:
        """All of them."""
        return self._things


class PlacementView:
    """Notified of every change; what depends only on a node is computed once per change, not once per pod."""

    def __init__(self, rules: ViewRules) -> None:
        self._rules = rules
        self.nodes = ByName[SchedulableNode]()
        self._cnrs = ByName[OfferingCnr]()
        self._metrics = ByName[MeasuredNode]()
        self._said: dict[str, SaidByNode] = {}
        self.pods = AssignedPods()
        self._states: dict[str, NodeState] = {}

    def put_node(self, uid: str, node: SchedulableNode | None) -> None:
        """Record a Node, or its deletion, which also removes its messages."""
        name = self.nodes.put(uid, node)
        if self.nodes.get(name) is None:
            self._said.pop(name, None)
        self._states.pop(name, None)

    def put_cnr(self, uid: str, cnr: OfferingCnr | None) -> None:
        """A CNR is as given, or gone."""
        self._states.pop(self._cnrs.put(uid, cnr), None)

    def put_metric(self, uid: str, metric: MeasuredNode | None) -> None:
        """A NodeMetric is as given, or gone."""
        self._states.pop(self._metrics.put(uid, metric), None)

    def put_pod(self, uid: str, pod: PodSeen | None) -> None:
        """A pod holds room as given, or none any more."""
        for node in self.pods.put(uid, pod):
            self._states.pop(node, None)

    def hear(self, node: str, said: SaidByNode) -> None:
        """Record a node's message; it is processed at once, because thousands of them would delay an answer."""
        # Invented names would fill the memory, and no scheduler asks about a name without a Node.
        if self.nodes.get(node) is None:
            return
        self._said[node] = said
        self._states[node] = self._state(node, said.heard_s)

    def state(self, node: str, now_s: float) -> NodeState:
        """Return the current state of a node."""
        known = self._states.get(node)
        if known is None or now_s > known.until_s:
            known = self._state(node, now_s)
            # Requests about names that do not exist would fill the memory.
            if self.nodes.get(node) is not None:
                self._states[node] = known
        return known

    @property
    def said_max_age_s(self) -> float:
        """How long a node's message counts."""
        return self._rules.said_max_age_s

    @property
    def heard(self) -> Mapping[str, SaidByNode]:
        """The last message of each node, by name."""
        return self._said

    def _state(self, name: str, now_s: float) -> NodeState:
        known = NodeKnown(self._said.get(name), self.nodes.get(name), self._cnrs.get(name), self._metrics.get(name))
        until_s = float("inf") if known.said is None else known.said.heard_s + self._rules.said_max_age_s
        fresh = known.said is not None and now_s <= until_s
        pods, load = self.pods.of(name), known.load(fresh=fresh)
        return NodeState(
            name,
            taints=() if known.cnr is None else known.cnr.taints,
            offered=known.offered(fresh=fresh),
            requested={RECLAIMED_CPU: pods.reclaimed_millis, RECLAIMED_MEMORY: pods.reclaimed_bytes},
            allocatable={} if known.node is None else known.node.allocatable,
            load=load,
            expected=None if load is None else self._expected(load, name),
            machine=self._machine(known.said, name) if fresh and known.said is not None else None,
            overcommitted=_with_pods(known.overcommitted, pods),
            until_s=until_s if fresh else float("inf"),
        )

    def _machine(self, said: SaidByNode, name: str) -> Machine | None:
        if said.machine is None:
            return None
        unseen = [
            bindable
            for _, pod in sorted(self.pods.of(name).pods.items())
            if (bindable := pod.ask.bindable) is not None and not said.shows(pod, REPORT_S)
        ]
        return with_coming(said.machine, BINDING, unseen)

    def _expected(self, load: LoadReport, name: str) -> ExpectedUse:
        pods = (
            AssignedPod(pod.key, self.estimate(pod.ask), pod.ask.prod, pod.assigned_at)
            for pod in self.pods.of(name).pods.values()
        )
        return ExpectedUse.of(load, pods, self._rules.aggregate)

    def estimate(self, ask: PodAsk) -> Amounts:
        """Return the estimated use of an unmeasured pod."""
        return _estimated(ask, self._rules.factors)


def _with_pods(node: OvercommittedNode | None, pods: PodsOfNode) -> OvercommittedNode | None:
    """Add pods that were assigned to the node but are not in the CNR's bound CPUs yet."""
    if node is None:
        return None
    bound = max(node.guaranteed_cpus, pods.own_cpus)
    return replace(node, requested_cpu_millis=pods.cpu_millis, guaranteed_cpus=bound)


@lru_cache(maxsize=MOST_ASKS)
def _estimated(ask: PodAsk, factors: tuple[tuple[str, int], ...]) -> Amounts:
    return estimate(ask.requests, ask.limits, dict(factors))
