"""From percentiles of usage to a request (docs/facts/katalyst-recommendation.md#request)."""

from collections.abc import Mapping
from dataclasses import dataclass

from shared.errors import Refused

KIB, MIB = 1024, 1024 * 1024
BUFFER_PERCENT = 30
"""Default percentage that is added to a percentile."""
MOST_BUFFER_PERCENT = 100


@dataclass(frozen=True, slots=True)
class AllowedRange:
    """The owner's bounds of a container, by resource in milli and bytes; a missing one is unbounded."""

    at_least: Mapping[str, int]
    at_most: Mapping[str, int]

    def bounded(self, resource: str, amount: int) -> int:
        """An amount within the range; where both bounds contradict each other, the lower one holds."""
        return max(min(amount, self.at_most.get(resource, amount)), self.at_least.get(resource, 0))


@dataclass(frozen=True, slots=True)
class RequestedMemory:
    """Bytes to ask for, and whether a kill for want of memory decided."""

    size_bytes: int
    from_oom: bool


def with_buffer(value: float, buffer_percent: float) -> float:
    """A value and so many percent of it more.

    Raises:
        Refused: `invalid_buffer`.
    """
    if not 0 <= buffer_percent <= MOST_BUFFER_PERCENT:
        raise Refused(
            f"buffer_percent {buffer_percent}: want 0 to {MOST_BUFFER_PERCENT}; 30 is usual", reason="invalid_buffer"
        )
    return value * (1 + buffer_percent / 100)


def requested_cpu(cores: float, buffer_percent: float, allowed: AllowedRange) -> int:
    """Millicores to ask for."""
    return allowed.bounded("cpu", int(with_buffer(cores, buffer_percent) * 1000))


def requested_memory(
    used_bytes: float, buffer_percent: float, oom_bytes: int | None, allowed: AllowedRange
) -> RequestedMemory:
    """Return the bytes to request; what a kill taught counts if it is more, and is never added to the use."""
    wanted = rounded_memory(int(with_buffer(used_bytes, buffer_percent)))
    from_oom = oom_bytes is not None and oom_bytes > wanted
    chosen = oom_bytes if oom_bytes is not None and from_oom else wanted
    return RequestedMemory(allowed.bounded("memory", chosen), from_oom)


def rounded_memory(size_bytes: int) -> int:
    """Round up to whole MiB, below one to whole KiB, below one not at all: figures that a person can read."""
    unit = MIB if size_bytes >= MIB else KIB if size_bytes >= KIB else 1
    return -(-size_bytes // unit) * unit
