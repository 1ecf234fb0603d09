"""The checkpoint holds what qrm has applied, and the record what groups had before, for qrm's next life."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.contracts.advice import PoolAdvice
from shared.contracts.envelope import CpuList
from shared.core.cgroups.knobs import Knob

_STEP = r"[a-zA-Z0-9_][-a-zA-Z0-9_.:@]{0,254}"
Amount = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]


class FormerValue(BaseModel):
    """The value of one knob of one group before Sublet wrote it, in the knob's unit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    group: Annotated[str, Field(pattern=rf"^({_STEP}(/{_STEP})*)?$", max_length=4096)]
    """Empty: the root, for values of devices."""
    knob: Knob
    device: Annotated[str, Field(pattern=r"^([0-9]{1,4}:[0-9]{1,7})?$")] = ""
    """The number of the device, of knobs that have a value for each."""
    value: Amount
    text: Annotated[str, Field(pattern=r"^[a-z0-9:=. ]*$", max_length=256)] = ""
    """The line that was there, of knobs whose value is one."""
    wrote: Annotated[tuple[Amount, ...], Field(max_length=8)] = ()
    """Values that may have been written since, if only those are ours to restore; empty: any current value is."""

    @model_validator(mode="after")
    def _of_the_root_devices_alone(self) -> Self:
        if not (self.group or self.device):
            raise ValueError("group: the root has values of devices alone; name a group below it")
        return self


class Checkpoint(BaseModel):
    """The advice in force, the CPUs that its pools were given, and those that pods (by UID) have for themselves."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: str
    advice: PoolAdvice
    pools: dict[str, CpuList]
    pods: dict[str, CpuList] = {}


RISES_EVERY_S = 10.0
"""A rise of the offer alone is written at most this often. Until then a restart offers a little less for the seconds
that fresh advice takes; a fall is written at once."""


def same_after_restart(kept: PoolAdvice, now: PoolAdvice) -> bool:
    """Return whether a restart would do the same with either advice, or nearly so, so that no write is needed.

    The offer moves with every sample; half a percent of it is not worth a write to disk.
    """
    recent = abs((now.sent_at - kept.sent_at).total_seconds()) < RISES_EVERY_S
    return (
        _sizes(kept) == _sizes(now)
        and _offers(kept.reclaimed_cpu_millis, now.reclaimed_cpu_millis, recent=recent)
        and _offers(kept.reclaimed_memory_bytes, now.reclaimed_memory_bytes, recent=recent)
        and _near(kept.reclaimed_memory_limit_bytes, now.reclaimed_memory_limit_bytes)
    )


def _offers(kept: int, now: int, *, recent: bool) -> bool:
    return (recent and kept <= now) or _near(kept, now)


def _sizes(advice: PoolAdvice) -> tuple[object, ...]:
    quota = advice.reclaimed_quota_millis
    return advice.policy, advice.mode, advice.pools, advice.overlap, quota, advice.valid_for_s


def _near(kept: int | None, now: int | None) -> bool:
    # "No limit" is not near to any limit, however high that is.
    if kept is None or now is None:
        return kept is now
    return abs(kept - now) * 200 <= max(kept, now)
