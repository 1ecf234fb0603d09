"""The checkpoint holds what qrm has applied, for its next life."""

from pydantic import BaseModel, ConfigDict

from shared.contracts.advice import PoolAdvice
from shared.contracts.envelope import CpuList
from shared.core.cgroups.knobs import Knob


class Checkpoint(BaseModel):
    """The advice in force, the CPUs that its pools were given, and those that pods (by UID) have for themselves."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: str
    advice: PoolAdvice
    pools: dict[str, CpuList]
    pods: dict[str, CpuList] = {}
    knobs: tuple[Knob, ...] = ()
    """Settings of isolation of which something may be in force."""


def same_after_restart(kept: PoolAdvice, now: PoolAdvice) -> bool:
    """Whether a restart would do the same with either advice, so that none need be written.

    Memory moves with every sample; half a percent of it is worth no write to the disk.
    """
    return (
        _sizes(kept) == _sizes(now)
        and _near(kept.reclaimed_memory_bytes, now.reclaimed_memory_bytes)
        and _near(kept.reclaimed_memory_limit_bytes, now.reclaimed_memory_limit_bytes)
    )


def _sizes(advice: PoolAdvice) -> tuple[object, ...]:
    cpu = (advice.reclaimed_cpu_millis, advice.reclaimed_quota_millis)
    return advice.policy, advice.mode, advice.pools, advice.overlap, cpu, advice.valid_for_s


def _near(kept: int | None, now: int | None) -> bool:
    # "No limit" is not near to any limit, however high that is.
    if kept is None or now is None:
        return kept is now
    return abs(kept - now) * 200 <= max(kept, now)
