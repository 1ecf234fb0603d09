"""Transparent offloading decides how much idle memory a cgroup gives back now (cgroup v2, off by default).

The kernel reclaims a little, again and again, as long as the workload does not notice: the share of time in which tasks
stall on memory (PSI) stays below a target, and reclaimed memory is not read in again. The closer to the target, the
smaller the step; above it, or when pages come back, there is a pause and a smaller stride
(docs/facts/katalyst-memory.md#transparent-offloading).
"""

from collections.abc import Mapping
from dataclasses import dataclass

GROWTH = 1.05
"""By which the stride grows after each quiet step (Katalyst's figure)."""
PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class OffloadRules:
    """How boldly memory is given back; target and stride are Katalyst's.

    Facts: docs/facts/katalyst-memory.md#transparent-offloading.
    """

    target_percent: float = 0.1
    """Share of time in which some task stalls on memory, in percent, that is borne."""
    stride: float = 0.01
    """Part of the use that one step gives back at most."""
    most_bytes: int = 64 << 20
    """Upper bound of one step, because the writer waits for the kernel."""
    least_bytes: int = 1 << 20
    """A smaller step is not worth a call."""
    keep_bytes: int = 64 << 20
    """A cgroup is never asked to go below this."""
    refault_bytes_s: float = float(1 << 20)
    """Memory read in again by second that is borne."""
    pause_s: float = 60.0
    """How long nothing is given back after a step too far."""


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """One look at a cgroup; None where something could not be read. `refault_pages` is a counter."""

    usage_bytes: int | None = None
    pressure_percent: float | None = None
    refault_pages: int | None = None


@dataclass(frozen=True, slots=True)
class OffloadPace:
    """What is remembered of a cgroup between steps."""

    boldness: float = 1.0
    """Part of the stride that is dared, above 0 and at most 1."""
    resume_s: float | None = None
    """Nothing is given back before; None: no pause."""
    refaults: tuple[float, int] | None = None
    """Time and value of the last reading of the refault counter."""


@dataclass(frozen=True, slots=True)
class OffloadStep:
    """How much to give back now, what to remember for the next step, and the rule that decided."""

    bytes: int
    pace: OffloadPace
    why: str


def next_step(pace: OffloadPace, rules: OffloadRules, now_s: float, seen: MemoryReading) -> OffloadStep:
    """Return what a cgroup gives back now; nothing while figures are unknown (absent is not zero)."""
    rate = _refault_bytes_s(pace.refaults, now_s, seen.refault_pages)
    refaults = pace.refaults if seen.refault_pages is None else (now_s, seen.refault_pages)
    if seen.usage_bytes is None or seen.pressure_percent is None or rate is None:
        return OffloadStep(0, OffloadPace(pace.boldness, pace.resume_s, refaults), "a figure is missing")
    # Before the pause is looked at: trouble during a pause prolongs it.
    if seen.pressure_percent >= rules.target_percent:
        return _backed_off(pace, rules, now_s, refaults, "pressure is at its target")
    if rate > rules.refault_bytes_s:
        return _backed_off(pace, rules, now_s, refaults, "memory given back is read in again")
    if pace.resume_s is not None and now_s < pace.resume_s:
        return OffloadStep(0, OffloadPace(pace.boldness, pace.resume_s, refaults), "pause")
    room = 1 - seen.pressure_percent / rules.target_percent
    size = int(seen.usage_bytes * rules.stride * pace.boldness * room)
    size = min(size, rules.most_bytes, seen.usage_bytes - rules.keep_bytes) // PAGE_BYTES * PAGE_BYTES
    if size < rules.least_bytes:
        return OffloadStep(0, OffloadPace(pace.boldness, None, refaults), "too little to give back")
    return OffloadStep(size, OffloadPace(min(1.0, pace.boldness * GROWTH), None, refaults), "quiet")


def _backed_off(
    pace: OffloadPace, rules: OffloadRules, now_s: float, refaults: tuple[float, int] | None, why: str
) -> OffloadStep:
    """A pause; the stride is halved once for each, not once for each look during it."""
    paused = pace.resume_s is not None and now_s < pace.resume_s
    boldness = pace.boldness if paused else pace.boldness / 2
    return OffloadStep(0, OffloadPace(boldness, now_s + rules.pause_s, refaults), why)


def _refault_bytes_s(before: tuple[float, int] | None, now_s: float, pages: int | None) -> float | None:
    """Return the refault rate; None without two readings, or if the counter went back because its cgroup was
    recreated."""
    if before is None or pages is None or pages < before[1] or now_s <= before[0]:
        return None
    return (pages - before[1]) * PAGE_BYTES / (now_s - before[0])


def pressure_percent(text: str) -> float | None:
    """Return the share of the last 10 s in which some task stalled, from a pressure file; None if it has none."""
    for line in text.splitlines():
        kind, *pairs = line.split()
        fields = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        # "some" and not "full": the first task that stalls is the one that notices.
        if kind == "some" and "avg10" in fields:
            return _number(fields["avg10"])
    return None


def refault_pages(stat: Mapping[str, str]) -> int | None:
    """Return the file and swap pages that were read in again, from a `memory.stat`; None if it has neither."""
    told = [stat[name] for name in ("workingset_refault_anon", "workingset_refault_file") if name in stat]
    numbers = [int(value) for value in told if value.isdigit()]
    return sum(numbers) if numbers and len(numbers) == len(told) else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
