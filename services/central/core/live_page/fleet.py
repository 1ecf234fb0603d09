"""`FleetView` keeps one row a node for the live page, and says which rows have changed since a revision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.central.core.heartbeats.readiness import Assessment, Heartbeat
from shared.contracts.cluster.offer import NodeOffer
from shared.contracts.pod import QosClass

CLASSES: tuple[QosClass, ...] = ("system_cores", "dedicated_cores", "shared_cores", "reclaimed_cores")
COLUMNS = (
    "name", "state", "why", "mode", "revision", "refused", "stale", "cpu_millis", "used_cpu_millis", "memory_bytes",
    "used_memory_bytes", "offered_cpu_millis", "offered_memory_bytes", "pods", "class_cpu_millis",
)  # fmt: skip
"""Of a row, in order. `pods` and `class_cpu_millis` have one entry a QoS class, in the order of `CLASSES`."""
WHY_CHARACTERS = 200

Row = tuple[Any, ...]
_NO_OFFER: Row = (False, None, None, None, None, None, None, (0,) * len(CLASSES), (None,) * len(CLASSES))


@dataclass(frozen=True, slots=True)
class FleetChanges:
    """What a page that knows revision `since` needs to show `revision`."""

    since: int
    revision: int
    rows: Sequence[Row]
    gone: Sequence[str]


@dataclass(slots=True)
class _Node:
    heard: Row
    offered: Row = _NO_OFFER
    revision: int = 0

    def row(self, name: str) -> Row:
        return (name, *self.heard, *self.offered)


@dataclass(slots=True)
class FleetView:
    """All nodes that were heard. A figure that no message told is None in its row, never 0."""

    revision: int = 0
    _nodes: dict[str, _Node] = field(default_factory=dict)
    _offers: dict[str, Row] = field(default_factory=dict)
    _gone: dict[str, int] = field(default_factory=dict)
    """The revision in which each node went that is not there any more."""

    def __len__(self) -> int:
        return len(self._nodes)

    def take_offer(self, offer: NodeOffer) -> None:
        """Keep what one node offers and uses."""
        columns = _offer_columns(offer)
        self._offers[offer.node] = columns
        node = self._nodes.get(offer.node)
        if node is not None and node.offered != columns:
            node.offered = columns
            node.revision = self._next()

    def take_standings(self, assessment: Assessment, heartbeats: Mapping[str, Heartbeat]) -> None:
        """Keep how every node stands; a node without a standing is gone."""
        for name in self._nodes.keys() - assessment.nodes.keys():
            del self._nodes[name]
            self._offers.pop(name, None)
            self._gone[name] = self._next()
        for name, standing in assessment.nodes.items():
            heartbeat = heartbeats.get(name)
            heard = _heard_columns(standing.state, standing.why, heartbeat)
            node = self._nodes.get(name)
            if node is None:
                self._gone.pop(name, None)
                self._nodes[name] = _Node(heard, self._offers.get(name, _NO_OFFER), self._next())
            elif node.heard != heard:
                node.heard = heard
                node.revision = self._next()

    def changes(self, since: int) -> FleetChanges:
        """Everything that differs between revision `since` and now; 0: all rows."""
        rows = [node.row(name) for name, node in self._nodes.items() if node.revision > since]
        gone = [name for name, revision in self._gone.items() if revision > since] if since else []
        return FleetChanges(since, self.revision, rows, gone)

    def forget_gone(self, before: int) -> None:
        """Drop the names of gone nodes that every page has been told, those of revisions up to `before`."""
        self._gone = {name: revision for name, revision in self._gone.items() if revision > before}

    def _next(self) -> int:
        self.revision += 1
        return self.revision


def _heard_columns(state: str, why: str, heartbeat: Heartbeat | None) -> Row:
    if heartbeat is None:
        return (state, why[:WHY_CHARACTERS], None, None, 0)
    return (state, why[:WHY_CHARACTERS], heartbeat.mode, heartbeat.revision, len(heartbeat.refusals))


def _offer_columns(offer: NodeOffer) -> Row:
    """The columns from `stale` on."""
    cpus = [numa.capacity.cpu_millis for numa in offer.numas]
    memories = [numa.capacity.memory_bytes for numa in offer.numas]
    offered = offer.reclaimed
    return (
        offer.stale,
        _sum_of_all(cpus),
        offer.used.cpu_millis,
        _sum_of_all(memories),
        offer.used.memory_bytes,
        None if offered is None else offered.cpu_millis,
        None if offered is None else offered.memory_bytes,
        tuple(offer.pods.qos.count(qos) for qos in CLASSES),
        tuple(_used_by(offer, qos) for qos in CLASSES),
    )


def _sum_of_all(amounts: Sequence[int | None]) -> int | None:
    """The sum; None where there is none or one of them is not known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None


def _used_by(offer: NodeOffer, qos: QosClass) -> int | None:
    pods = offer.pods
    known = [used for kind, used in zip(pods.qos, pods.cpu_millis, strict=True) if kind == qos and used is not None]
    return sum(known) if known else None
