"""PoolAdvice: how large each pool should be, and what may be offered to reclaimed pods."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from shared.contracts.envelope import Amount, Bytes, Count, Message, Millis, Part, Reason

Mode = Literal["observe", "dry-run", "enforce"]


class PoolSize(Part):
    """CPUs for one pool; `numa` -1 means: on no NUMA node in particular."""

    pool: str
    cpus: Count
    numa: Annotated[int, Field(ge=-1)] = -1


class PoolAdvice(Message):
    """Full state: the pools' sizes, whole, every time. It may be used for `valid_for_s` after its receipt."""

    kind: ClassVar[str] = "advice"

    policy: str
    mode: Mode = "enforce"
    pools: tuple[PoolSize, ...]
    overlap: bool = False
    """The machine is too small for disjoint pools: tenants may run on every CPU, reclaimed work shares some of them."""
    reclaimed_cpu_millis: Millis
    reclaimed_memory_bytes: Bytes
    reclaimed_memory_limit_bytes: Bytes | None = None
    """Limit for the reclaimed pool's cgroup; None: leave it as it is."""
    valid_for_s: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 10.0
    required_cores: Amount | None = None
    why: tuple[Reason, ...] = ()

    def size_of(self, pool: str) -> int:
        """CPUs advised for a pool over all NUMA nodes; 0 where it is not named."""
        return sum(p.cpus for p in self.pools if p.pool == pool)
