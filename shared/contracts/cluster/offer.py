"""NodeOffer: what a node offers and uses now, for whoever places pods."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from shared.contracts.envelope import Amount, Bytes, Count, Message, MessagePart, Millis
from shared.contracts.ids import ObjectName, PodUid
from shared.contracts.mode import NodeMode
from shared.contracts.pod import QosClass

MAX_OFFER_BYTES = 128 << 10
"""Of one message: 250 pods take some 30 KB."""
OFFER_PERIOD_S = 10.0
"""Between two messages of a node on which nothing changes, at most."""
MAX_PODS = 512
"""Of one node in one message; kubelet runs 110 unless told otherwise."""
MAX_NUMAS = 64
MAX_ALLOCATIONS = 512
MAX_WINDOWS = 8

TopologyPolicy = Literal["none", "single_numa_pod", "single_numa_container", "numeric_container"]
"""How the node puts a pod that wants to be bound onto its NUMA nodes."""
WindowStatistic = Literal["avg", "p50", "p90", "p95", "p99"]


class ResourceAmounts(MessagePart):
    """CPU and memory; what is not known is absent, never 0."""

    cpu_millis: Millis | None = None
    memory_bytes: Bytes | None = None


class WindowUsage(MessagePart):
    """What the node used over a window that ends now."""

    window_s: Amount
    used: dict[WindowStatistic, ResourceAmounts] = {}


class NumaAllocation(MessagePart):
    """What a pod that is bound to one NUMA node has asked for there."""

    uid: PodUid
    dedicated: bool = False
    requests: ResourceAmounts = ResourceAmounts()


class OfferedNuma(MessagePart):
    """One NUMA node: what it has, what of it pods may have, and who is bound to it."""

    numa: Count
    socket: Count | None = None
    capacity: ResourceAmounts = ResourceAmounts()
    allocatable: ResourceAmounts = ResourceAmounts()
    reclaimed_cpu_millis: Millis | None = None
    """The part of the reclaimed offer that lies here."""
    allocations: Annotated[tuple[NumaAllocation, ...], Field(max_length=MAX_ALLOCATIONS)] = ()


class PodUsed(NamedTuple):
    """What one pod uses, and as what it runs."""

    uid: str
    namespace: str
    name: str
    qos: QosClass
    prod: bool
    """Whether it is of priority class prod, by its label or its number."""
    used: ResourceAmounts


class PodUses(MessagePart):
    """Every pod of the node, a column for each thing that is told of one: hundreds of pods in few bytes."""

    uids: Annotated[tuple[PodUid, ...], Field(max_length=MAX_PODS)] = ()
    namespaces: tuple[ObjectName, ...] = ()
    names: tuple[ObjectName, ...] = ()
    qos: tuple[QosClass, ...] = ()
    prod: tuple[bool, ...] = ()
    cpu_millis: tuple[Millis | None, ...] = ()
    memory_bytes: tuple[Bytes | None, ...] = ()

    @model_validator(mode="after")
    def _same_rows(self) -> Self:
        columns = (self.namespaces, self.names, self.qos, self.prod, self.cpu_millis, self.memory_bytes)
        if any(len(column) != len(self.uids) for column in columns):
            raise ValueError(f"columns of {[len(column) for column in columns]} rows for {len(self.uids)} pods")
        return self

    def rows(self) -> Iterator[PodUsed]:
        """One pod after the other."""
        columns = zip(self.uids, self.namespaces, self.names, self.qos, self.prod, self.cpu_millis, self.memory_bytes,
                      strict=True)  # fmt: skip
        for uid, namespace, name, qos, prod, cpu_millis, memory_bytes in columns:
            used = ResourceAmounts(cpu_millis=cpu_millis, memory_bytes=memory_bytes)
            yield PodUsed(uid, namespace, name, qos, prod, used)


class NodeOffer(Message):
    """What a node offers now, as it stands on its Node, and what it uses: at once when the offer changes.

    Every age is as of `sent_at`, by the node's monotonic clock: whoever reads adds the time since it was received.
    """

    kind: ClassVar[str] = "offer"

    mode: NodeMode = "enforce"
    reclaimed: ResourceAmounts | None = None
    """What reclaimed pods may be placed on; 0: nothing is for sale, or it was withdrawn; None: not known yet."""
    batch: ResourceAmounts | None = None
    """Koordinator's batch resources; None: they are not offered."""
    mid: ResourceAmounts | None = None
    """Koordinator's mid resources; None: they are not offered."""
    stale: bool = False
    """True: nothing new was heard of what is applied for too long; the offer is the last one, and does not rise."""
    topology_policy: TopologyPolicy | None = None
    """None: the node does not say."""
    numas: Annotated[tuple[OfferedNuma, ...], Field(max_length=MAX_NUMAS)] = ()
    usage_age_s: Amount | None = None
    """Age of the sample behind all uses; None: none is new enough, and no use is told."""
    window_s: Amount | None = None
    """Over which `used` and the uses of `pods` are averaged, as far as they were measured."""
    used: ResourceAmounts = ResourceAmounts()
    """What the node uses."""
    windows: Annotated[tuple[WindowUsage, ...], Field(max_length=MAX_WINDOWS)] = ()
    """The same over longer windows, ascending; one of which less than half was measured is left out."""
    pods: PodUses = PodUses()
    pods_left_out: Count = 0
    """Pods of the node that are not in `pods`, because the message would be longer than its readers read."""
