"""Decide whether a pass is worthwhile before the period is over: by the tripwire, or by the kernel's pressure. Pure.

Between two passes the tripwire reads three cheap figures many times a second. A pass starts at once when one of them
differs enough from the last sample; otherwise readers would use figures up to a period old.
"""

from dataclasses import dataclass, replace
from typing import Literal

Trigger = Literal["period", "start", "tenant", "psi", "memory", "pods"]

TENANT_RISE = 0.2
"""A rise below a fifth of the recent peak is noise on a large machine, whatever it is in cores."""
MEMORY_DROP = 0.01
"""Free memory lost since the last sample, as a share of the total, that is worth a pass."""
MEMORY_REARM = 0.01
"""Free memory must be this share of the total above the watch before falling below it counts again."""
_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class WakeBounds:
    """What counts as news; see the settings of the same names. A peak is forgotten after `peak_hold_s`."""

    tenant_step_cores: float
    memory_watch_bytes: int
    peak_hold_s: float


@dataclass(frozen=True, slots=True)
class TripwireReading:
    """What one probe of the tripwire read; None if the figure cannot be read."""

    at_s: float
    tenant_usage_ns: int | None
    memory_free_bytes: int | None
    pods_generation: int | None


@dataclass(frozen=True, slots=True)
class Observation:
    """The figures that are compared: from two probes, or from a sample."""

    tenant_cores: float | None
    memory_free_bytes: int | None
    pods_generation: int | None


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """The machine's memory, and the kernel setting that decides when it begins to reclaim."""

    total_bytes: int | None
    scale_factor: int | None
    """`vm.watermark_scale_factor`."""

    @property
    def watermark_bytes(self) -> float | None:
        """Free bytes below which the kernel's own reclaim is at work."""
        return watermark(self.total_bytes, self.scale_factor)


@dataclass(frozen=True, slots=True)
class LastReported:
    """What the last sample reported, and the recent peak of the tenants' use."""

    seen: Observation
    memory_total_bytes: int | None = None
    watermark_bytes: float | None = None
    peak_cores: float | None = None
    peak_at_s: float = 0.0
    watch_armed: bool = True


def observation(before: TripwireReading, now: TripwireReading) -> Observation:
    """The figures that two probes give together; a counter that went back gives none."""
    cores = None
    if (
        before.tenant_usage_ns is not None
        and now.tenant_usage_ns is not None
        and now.at_s > before.at_s
        and now.tenant_usage_ns >= before.tenant_usage_ns
    ):
        cores = (now.tenant_usage_ns - before.tenant_usage_ns) / _NS_PER_S / (now.at_s - before.at_s)
    return Observation(cores, now.memory_free_bytes, now.pods_generation)


def watermark(total_bytes: int | None, scale_factor: int | None) -> float | None:
    """Free bytes below which the kernel's own reclaim is at work: total * scale / 10000.

    Katalyst's threshold for the whole machine: docs/facts/katalyst-eviction.md#system-memory.
    """
    return None if total_bytes is None or scale_factor is None else total_bytes * scale_factor / 10_000


def why_now(last: LastReported, seen: Observation, bounds: WakeBounds) -> Trigger | None:
    """Return why a pass is worthwhile now; None if the last sample still holds.

    A figure that is absent on either side is no news. Below the kernel's watermark every probe is news, because the
    evictor needs two samples to confirm, and must not wait a period for the second one.
    """
    # First of all: here the kernel itself reclaims, and what needs two samples must get them.
    if _below(seen.memory_free_bytes, last.watermark_bytes):
        return "memory"
    if _tenants_rose(last.peak_cores, seen.tenant_cores, bounds.tenant_step_cores):
        return "tenant"
    if last.watch_armed and _below(seen.memory_free_bytes, bounds.memory_watch_bytes):
        return "memory"
    if _memory_fell(last, seen):
        return "memory"
    if None not in (seen.pods_generation, last.seen.pods_generation):
        return "pods" if seen.pods_generation != last.seen.pods_generation else None
    return None


def reported(
    before: LastReported | None, seen: Observation, memory: KernelMemory, now_s: float, bounds: WakeBounds
) -> LastReported:
    """The state to compare probes with once a sample is published.

    The tenants' peak stays for `peak_hold_s`, so that a load that comes in bursts is news once and not with every
    burst; the watch over free memory arms again only when memory has clearly recovered.
    """
    now = LastReported(seen, memory.total_bytes, memory.watermark_bytes, seen.tenant_cores, now_s)
    if before is None:
        # A service that starts on a node short of memory has reported it with its first sample.
        return replace(now, watch_armed=not _below(seen.memory_free_bytes, bounds.memory_watch_bytes))
    if _peak_stands(before, seen, now_s, bounds.peak_hold_s):
        now = replace(now, peak_cores=before.peak_cores, peak_at_s=before.peak_at_s)
    return replace(now, watch_armed=_armed(before.watch_armed, seen.memory_free_bytes, memory.total_bytes, bounds))


@dataclass(frozen=True, slots=True)
class PressureGate:
    """How often the kernel's pressure triggers may wake a pass: steady pressure must not become a busy loop."""

    gap_s: float
    last_at_s: float = float("-inf")

    def allows(self, now_s: float) -> bool:
        """Whether the gap since the last such pass is over."""
        return now_s - self.last_at_s >= self.gap_s

    def after(self, now_s: float, *, news: bool, min_gap_s: float, max_gap_s: float) -> "PressureGate":
        """Return the gate after a pass: fully open if it brought news, otherwise the gap doubles, up to a period."""
        # Never beyond a period: then a pass is made anyway.
        return PressureGate(min_gap_s if news else min(max(min_gap_s, self.gap_s * 2), max_gap_s), now_s)


def _below(value: float | None, bound: float | None) -> bool:
    return value is not None and bound is not None and value < bound


def _tenants_rose(peak_cores: float | None, now_cores: float | None, step_cores: float) -> bool:
    if peak_cores is None or now_cores is None:
        return False
    rise = now_cores - peak_cores
    # Both: half a core is much on 4 CPUs and nothing on 400.
    return rise > step_cores and rise >= TENANT_RISE * peak_cores


def _memory_fell(last: LastReported, seen: Observation) -> bool:
    before, now, total = last.seen.memory_free_bytes, seen.memory_free_bytes, last.memory_total_bytes
    if before is None or now is None or total is None:
        return False
    return before - now > MEMORY_DROP * total


def _peak_stands(before: LastReported, seen: Observation, now_s: float, hold_s: float) -> bool:
    if before.peak_cores is None or now_s - before.peak_at_s >= hold_s:
        return False
    return seen.tenant_cores is None or before.peak_cores >= seen.tenant_cores


def _armed(armed: bool, free_bytes: int | None, total_bytes: int | None, bounds: WakeBounds) -> bool:
    if free_bytes is None or total_bytes is None:
        return armed
    # Disarmed below the watch and armed again well above it: a level that swings around the bound is one event.
    if free_bytes < bounds.memory_watch_bytes:
        return False
    return armed or free_bytes >= bounds.memory_watch_bytes + MEMORY_REARM * total_bytes
