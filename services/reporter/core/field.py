"""Define a report field: one file in `services/reporter/fields` that ends in `FIELD = ReportField(...)`.

A field turns a view of the newest messages into its fragment of the node's object (the CNR), and says which change of
that fragment must be written at once. It never reads a file, a clock or the bus.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from services.reporter.core.overcommit.kubelet_binding import KubeletManagers
from shared.build import Build
from shared.contracts.allocation import Allocation, Condition
from shared.contracts.kube.overcommit import Resource
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample

SaidRatios: TypeAlias = tuple[tuple[Resource, float], ...]
"""By resource how often it can be sold."""
Fragment: TypeAlias = Mapping[str, Any]
"""A part of the node's object, as JSON values from its root on: {"status": {…}}."""

TIMES = frozenset({"lastHeartbeatTime", "updateTime"})
"""Keys that hold times: documents that differ only in these are the same document."""


@dataclass(frozen=True, slots=True)
class Offered:
    """The part of an offer that is reported; never more than the offer."""

    cpu_millis: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class NumaShare:
    """The part of an offer on one NUMA node; None if unknown."""

    cpu_millis: int | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class FieldView:
    """The newest input of the reporter. A message that is too old stays here, and its flag says so."""

    now: datetime
    allocation: Allocation | None = None
    allocation_fresh: bool = False
    sample: NodeSample | None = None
    sample_fresh: bool = False
    services: tuple[ServiceHealth, ...] = ()
    """Every expected service, folded; a silent one has ok false."""
    offered: Offered | None = None
    """What is reported of the allocation's offer; None: all of it."""
    batch: Offered | None = None
    """What is reported of Koordinator's batch resources; None: they are not offered."""
    batch_by_numa: Mapping[int, NumaShare] = field(default_factory=dict)
    """The same by NUMA node; empty: not reported, or unknown."""
    mid: Offered | None = None
    """What is reported of Koordinator's mid resources; None: they are not offered."""
    bearable: SaidRatios = ()
    """The over-commitment that the node can bear, without resources whose ratio is unknown or not reported."""
    binding: KubeletManagers | None = None
    """What kubelet binds to pods; None: unknown, or not reported."""
    node_unread: tuple[str, ...] = ()
    """Declarations of the Node about its own colocation that cannot be followed, and why."""
    build: Build | None = None
    """The running build."""
    conditions: tuple[Condition, ...] = ()
    """Conditions of the reporter's own work."""


class FieldSettings(BaseModel):
    """Base of a field's own settings: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


S = TypeVar("S", bound=FieldSettings)


def changed(before: Any, now: Any) -> bool:
    """Whether two JSON values differ apart from the keys that only say when; what is equal is not walked through."""
    if before == now:
        return False
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        keys = (before.keys() | now.keys()) - TIMES
        return any((key in before) != (key in now) or changed(before.get(key), now.get(key)) for key in keys)
    if isinstance(before, (list, tuple)) and isinstance(now, (list, tuple)):
        return len(before) != len(now) or any(map(changed, before, now))
    return True


def _any_change(before: Fragment | None, now: Fragment | None, _settings: FieldSettings) -> bool:
    return changed(before, now)


@dataclass(frozen=True, slots=True)
class ReportField(Generic[S]):
    """One report field; every module in the folder offers one as `FIELD`."""

    settings: type[S]
    fragment: Callable[[FieldView, S], Fragment | None]
    """The field's fragment of the document; None where its input is missing. Absent is not zero."""
    urgent: Callable[[Fragment | None, Fragment | None, S], bool] = _any_change
    """Return whether a change of the written fragment to this one must be written at once; others wait for the
    refresh."""
    watches: Callable[[FieldView], object] | None = None
    """All of a view that can make a change urgent, compared by value: while it is the same, no fragment is made to be
    looked at. None: everything in the view."""


def plain(fragment: Callable[[FieldView], Fragment | None]) -> Callable[[FieldView, FieldSettings], Fragment | None]:
    """A field's function that needs no settings."""
    return lambda view, _settings: fragment(view)
