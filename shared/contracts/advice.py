"""PoolAdvice: how large each pool should be, and what may be offered to reclaimed pods."""

from typing import Annotated, ClassVar

from pydantic import Field

from shared.contracts.envelope import Amount, Bytes, Count, Message, MessagePart, Millis, Reason
from shared.contracts.ids import PodUid
from shared.contracts.mode import Mode

ISOLATION = "isolation-"
"""How the pools of isolated pods begin."""


def isolation_pool(pod: str) -> str:
    """The pool of an isolated pod, by its namespace/name."""
    return ISOLATION + pod.replace("/", ".")


class PoolSize(MessagePart):
    """CPUs for one pool; `numa` -1 means: on no NUMA node in particular."""

    pool: str
    cpus: Count
    numa: Annotated[int, Field(ge=-1)] = -1
    of_pods: bool = False
    """A pool of single pods (named, bound to a NUMA node, isolated, dedicated): passed over where they have gone."""


class CacheDrop(MessagePart):
    """Page cache that a reclaimed pod shall give back now."""

    uid: PodUid
    bytes: Annotated[int, Field(gt=0, le=1 << 60)]


class PoolAdvice(Message):
    """Full state: the pools' sizes, whole, every time. It may be used for `valid_for_s` after its receipt."""

    kind: ClassVar[str] = "advice"

    policy: str
    mode: Mode = "enforce"
    pools: tuple[PoolSize, ...]
    overlap: bool = False
    """Tenants may run on every CPU, and reclaimed work shares some of them: on a machine too small for disjoint pools,
    and where the shape `shared` is chosen. The sizes of the latter fit side by side, and are placed so where the kernel
    has no idle class."""
    reclaimed_cpu_millis: Millis
    reclaimed_memory_bytes: Bytes
    reclaimed_memory_limit_bytes: Bytes | None = None
    """Limit for the reclaimed pool's cgroup; None: leave it as it is."""
    reclaimed_quota_millis: Millis | None = None
    """CPU time that reclaimed pods may use together, whatever the size of their pool; None: no limit of that kind."""
    oversold_ratio: Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)] = 1.0
    """More CPU may be promised than the reclaimed pool holds, by so much: its pods seldom use all that they ask for."""
    drop_cache: tuple[CacheDrop, ...] = ()
    """Whose page cache must go, because memory runs short; once for each advice."""
    valid_for_s: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 10.0
    required_cores: Amount | None = None
    why: tuple[Reason, ...] = ()

    def size_of(self, pool: str) -> int:
        """CPUs advised for a pool over all NUMA nodes; 0 where it is not named."""
        return sum(p.cpus for p in self.pools if p.pool == pool)
