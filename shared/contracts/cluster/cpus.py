"""CpuWatch asks a node for its CPUs; CpuMap answers: whose each CPU is, and how busy it is."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from shared.contracts.envelope import Count, CpuList, Message, MessagePart, Millis
from shared.contracts.ids import ObjectName, PodUid

MAX_CPUS_BYTES = 128 << 10
"""Of one CpuMap: 1024 CPUs and 512 pods take some 90 KB."""
CPUS_PERIOD_S = 1.0
"""Between two CpuMap of a node that is watched."""
WATCH_PERIOD_S = 5.0
"""Between two CpuWatch for a node that somebody looks at."""
MAX_WATCH_S = 60.0
MAX_CPUS = 4096
MAX_POOLS = 256
MAX_PODS = 512

PoolName = Annotated[str, StringConstraints(min_length=1, max_length=253)]
BusyPercent = Annotated[int, Field(ge=0, le=100)]


class CpuWatch(Message):
    """Somebody looks at the node's CPUs; it tells them for `watch_s` seconds. `node` is the node that is asked."""

    kind: ClassVar[str] = "watch"

    watch_s: Annotated[float, Field(gt=0, le=MAX_WATCH_S, allow_inf_nan=False)] = 3 * WATCH_PERIOD_S


class CpuTable(MessagePart):
    """Every CPU that runs, a column for each property, ascending by CPU id."""

    ids: Annotated[tuple[Count, ...], Field(max_length=MAX_CPUS)] = ()
    sockets: tuple[Count, ...] = ()
    numas: tuple[Count, ...] = ()
    l3s: tuple[Annotated[int, Field(ge=-1)], ...] = ()
    """Group of CPUs that share a third-level cache; -1: not known."""
    cores: tuple[Count, ...] = ()
    """The lowest CPU of the same core."""
    busy_percent: tuple[BusyPercent | None, ...] = ()
    """None: not measured."""

    @model_validator(mode="after")
    def _same_rows(self) -> Self:
        columns = (self.sockets, self.numas, self.l3s, self.cores, self.busy_percent)
        if any(len(column) != len(self.ids) for column in columns):
            raise ValueError(f"columns of {[len(column) for column in columns]} rows for {len(self.ids)} CPUs")
        return self


class CpuPool(MessagePart):
    """One pool and the CPUs that are in force for it."""

    pool: PoolName
    cpus: CpuList


class CpuPod(MessagePart):
    """One pod, the CPUs that are in force for it, and what it uses; None: not measured."""

    uid: PodUid
    namespace: ObjectName
    name: ObjectName
    pool: PoolName
    cpus: CpuList
    cpu_millis: Millis | None = None


class CpuMap(Message):
    """The CPUs of a node while somebody looks at them. Without a CpuWatch no node says it."""

    kind: ClassVar[str] = "cpus"

    table: CpuTable = CpuTable()
    pools: Annotated[tuple[CpuPool, ...], Field(max_length=MAX_POOLS)] = ()
    pods: Annotated[tuple[CpuPod, ...], Field(max_length=MAX_PODS)] = ()
    pods_left_out: Count = 0
    """Pods of the node that are not in `pods`, because the message would be longer than its readers read."""
