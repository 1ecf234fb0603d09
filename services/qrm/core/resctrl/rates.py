"""Rates are made of the counters of bytes that resctrl keeps for each group and L3 cache.

Facts: docs/facts/resctrl.md#counters.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from services.qrm.core.resctrl.flow import Flow

MB_BYTES = 1_000_000
MOST_MB = 1 << 20
"""More than any L3 cache moves in a second: a larger difference is not between two readings of one counter."""
LEAST_S = 0.05
MOST_DIGITS = 20


@dataclass(frozen=True, slots=True)
class ByteCounter:
    """Bytes that a group has moved through one L3 cache since it was created."""

    local_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class CounterReading:
    """Counters by group and L3 cache, without missing ones."""

    at_s: float
    counters: Mapping[str, Mapping[int, ByteCounter]]


def read_counter(local: str | None, total: str | None) -> ByteCounter | None:
    """Return the counter of two files; None if either is not a number, such as `Unavailable`."""
    numbers = [_number(text) for text in (local, total)]
    return None if numbers[0] is None or numbers[1] is None else ByteCounter(numbers[0], numbers[1])


def _number(text: str | None) -> int | None:
    word = (text or "").strip()
    return int(word) if len(word) <= MOST_DIGITS and word.isascii() and word.isdigit() else None


def rates(before: CounterReading | None, now: CounterReading, groups: Iterable[str]) -> dict[str, dict[int, Flow]]:
    """Return the bytes per second of groups between two readings; a counter that went back, or is new, has no rate
    yet."""
    if before is None or now.at_s - before.at_s < LEAST_S:
        return {group: {} for group in groups}
    found: dict[str, dict[int, Flow]] = {}
    for group in groups:
        then = before.counters.get(group, {})
        pairs = ((l3, then[l3], counter) for l3, counter in now.counters.get(group, {}).items() if l3 in then)
        flows = ((l3, _flow(was, counter, now.at_s - before.at_s)) for l3, was, counter in pairs)
        found[group] = {l3: flow for l3, flow in flows if flow is not None}
    return found


def _flow(before: ByteCounter, now: ByteCounter, elapsed_s: float) -> Flow | None:
    local, total = now.local_bytes - before.local_bytes, now.total_bytes - before.total_bytes
    if min(local, total) < 0 or total > MOST_MB * MB_BYTES * elapsed_s:
        return None
    # The two files are read one after the other: a little more local than in all is all of it local.
    local_mb, total_mb = (int(min(one, total) / elapsed_s / MB_BYTES) for one in (local, total))
    return Flow(local_mb, total_mb - local_mb)
