"""Is a pass worth making now? The tripwire's decision and the limit on the kernel's pressure triggers. Pure.

Between two passes the tripwire reads three cheap figures many times a second. A pass is made at once when one of them
has left what the last sample told; otherwise everybody would go on with figures up to a period old.
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
class Bounds:
    """What counts as news; see the settings of the same names. A peak is forgotten after `peak_hold_s`."""

    tenant_step_cores: float
    memory_watch_bytes: int
    peak_hold_s: float


@dataclass(frozen=True, slots=True)
class Probe:
    """One look of the tripwire; None where the figure cannot be read."""

    at_s: float
    tenant_usage_ns: int | None
    memory_free_bytes: int | None
    pods_generation: int | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What is compared: from two probes, or from a sample."""

    tenant_cores: float | None
    memory_free_bytes: int | None
    pods_generation: int | None


@dataclass(frozen=True, slots=True)
class Told:
    """What the last sample told, and how high the tenants' usage has recently been told to be."""

    seen: Seen
    memory_total_bytes: int | None = None
    watermark_bytes: float | None = None
    peak_cores: float | None = None
    peak_at_s: float = 0.0
    watch_armed: bool = True


def seen_by(before: Probe, now: Probe) -> Seen:
    """What two probes show together. A counter that went back shows nothing."""
    cores = None
    if (
        before.tenant_usage_ns is not None
        and now.tenant_usage_ns is not None
        and now.at_s > before.at_s
        and now.tenant_usage_ns >= before.tenant_usage_ns
    ):
        cores = (now.tenant_usage_ns - before.tenant_usage_ns) / _NS_PER_S / (now.at_s - before.at_s)
    return Seen(cores, now.memory_free_bytes, now.pods_generation)


def watermark(total_bytes: int | None, scale_factor: int | None) -> float | None:
    """Free bytes below which the kernel's own reclaim is at work: total * scale / 10000.

    Katalyst's threshold for the whole machine: docs/facts/katalyst-eviction.md#system-memory.
    """
    return None if total_bytes is None or scale_factor is None else total_bytes * scale_factor / 10_000


def why_now(told: Told, seen: Seen, bounds: Bounds) -> Trigger | None:
    """What makes a pass worth making now; None where the last sample still tells the truth.

    A figure that is absent on either side is no news. Below the kernel's watermark every look is: the evictor needs
    two samples to confirm, and must not wait a period for the second one.
    """
    if _below(seen.memory_free_bytes, told.watermark_bytes):
        return "memory"
    if _tenants_rose(told.peak_cores, seen.tenant_cores, bounds.tenant_step_cores):
        return "tenant"
    if told.watch_armed and _below(seen.memory_free_bytes, bounds.memory_watch_bytes):
        return "memory"
    if _memory_fell(told, seen):
        return "memory"
    if None not in (seen.pods_generation, told.seen.pods_generation):
        return "pods" if seen.pods_generation != told.seen.pods_generation else None
    return None


def tell(before: Told | None, seen: Seen, total_bytes: int | None, scale_factor: int | None, now_s: float,
         bounds: Bounds) -> Told:  # fmt: skip
    """What is told once a sample is out.

    The tenants' peak stays for `peak_hold_s`, so that a load that comes in bursts is news once and not with every
    burst; the watch over free memory arms again only when memory has clearly recovered.
    """
    told = Told(seen, total_bytes, watermark(total_bytes, scale_factor), seen.tenant_cores, now_s)
    if before is None:
        return replace(told, watch_armed=not _below(seen.memory_free_bytes, bounds.memory_watch_bytes))
    if _peak_stands(before, seen, now_s, bounds.peak_hold_s):
        told = replace(told, peak_cores=before.peak_cores, peak_at_s=before.peak_at_s)
    return replace(told, watch_armed=_armed(before.watch_armed, seen.memory_free_bytes, total_bytes, bounds))


@dataclass(frozen=True, slots=True)
class PressureGate:
    """How often the kernel's pressure triggers may wake a pass: steady pressure must not become a busy loop."""

    gap_s: float
    last_at_s: float = float("-inf")

    def allows(self, now_s: float) -> bool:
        """Whether the gap since the last such pass is over."""
        return now_s - self.last_at_s >= self.gap_s

    def after(self, now_s: float, *, news: bool, min_gap_s: float, max_gap_s: float) -> "PressureGate":
        """The gate after a pass: wide open when it brought news, else the gap doubles, up to a period."""
        return PressureGate(min_gap_s if news else min(max(min_gap_s, self.gap_s * 2), max_gap_s), now_s)


def _below(value: float | None, bound: float | None) -> bool:
    return value is not None and bound is not None and value < bound


def _tenants_rose(peak_cores: float | None, now_cores: float | None, step_cores: float) -> bool:
    if peak_cores is None or now_cores is None:
        return False
    rise = now_cores - peak_cores
    return rise > step_cores and rise >= TENANT_RISE * peak_cores


def _memory_fell(told: Told, seen: Seen) -> bool:
    before, now, total = told.seen.memory_free_bytes, seen.memory_free_bytes, told.memory_total_bytes
    if before is None or now is None or total is None:
        return False
    return before - now > MEMORY_DROP * total


def _peak_stands(before: Told, seen: Seen, now_s: float, hold_s: float) -> bool:
    if before.peak_cores is None or now_s - before.peak_at_s >= hold_s:
        return False
    return seen.tenant_cores is None or before.peak_cores >= seen.tenant_cores


def _armed(armed: bool, free_bytes: int | None, total_bytes: int | None, bounds: Bounds) -> bool:
    if free_bytes is None or total_bytes is None:
        return armed
    if free_bytes < bounds.memory_watch_bytes:
        return False
    return armed or free_bytes >= bounds.memory_watch_bytes + MEMORY_REARM * total_bytes
