"""Hardware describes what a machine's control of caches and memory bandwidth can do, as read from resctrl's folder
`info`.

Facts: docs/facts/resctrl.md#what-the-hardware-takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Resource = Literal["L3", "MB"]
CACHE: Resource = "L3"
BANDWIDTH: Resource = "MB"
Vendor = Literal["intel", "amd"]
"""Vendor of the bandwidth unit: percent (Intel, and Arm's MPAM), or eighths of GB/s (AMD, Hygon)."""
MASK, LEAST_BITS = "L3/cbm_mask", "L3/min_cbm_bits"
LEAST_BANDWIDTH, STEP = "MB/min_bandwidth", "MB/bandwidth_gran"
MOST_GROUPS = ("L3/num_closids", "MB/num_closids")
COUNTERS = "L3_MON/mon_features"
INFO_FILES = (MASK, LEAST_BITS, LEAST_BANDWIDTH, STEP, COUNTERS, *MOST_GROUPS)
COUNTED = frozenset({"mbm_local_bytes", "mbm_total_bytes"})
MOST_UNITS = 1 << 16
"""More than any domain has: a root group with a larger value counts in MB/s (mounted with `mba_MBps`)."""
MOST_NUMBER, MOST_DIGITS = 1 << 16, 16
CPUINFO_BYTES = 4096
EIGHTHS_VENDORS = ("AuthenticAMD", "HygonGenuine")


@dataclass(frozen=True, slots=True)
class CacheHardware:
    """Constraints of an L3 cache mask."""

    domains: frozenset[int]
    mask: int
    """All ways that may be given."""
    least_bits: int = 1


@dataclass(frozen=True, slots=True)
class BandwidthHardware:
    """Constraints of a bandwidth, in the kernel's unit."""

    domains: frozenset[int]
    vendor: Vendor = "intel"
    least: int = 10
    step: int = 10


@dataclass(frozen=True, slots=True)
class Hardware:
    """What this machine controls; None: not, or not in a known way."""

    cache: CacheHardware | None
    bandwidth: BandwidthHardware | None
    most_groups: int | None = None
    """Greatest number of groups, including the root's; None: unknown."""
    counts: bool = False
    """Whether it counts what each group moves from and to memory."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Why cache or bandwidth control is missing, by resource; and unreadable parts of `info`."""


def read_hardware(whole: Mapping[str, Mapping[int, int]], info: Mapping[str, str | None], cpuinfo: str) -> Hardware:
    """Read the root's schemata, the files of `info` and `/proc/cpuinfo`; unreadable parts are not used.

    An unknown bound is not guessed: the kernel would refuse a wrong value, or accept one that is too large.
    """
    lacks: dict[str, str] = {}
    cache = _cache(whole.get(CACHE, {}), info, lacks)
    bandwidth = _bandwidth(whole.get(BANDWIDTH, {}), info, vendor_of(cpuinfo), lacks)
    used = [name for name, part in zip(MOST_GROUPS, (cache, bandwidth), strict=True) if part is not None]
    closids = {name: _number(info.get(name), 10) for name in used}
    lacks |= {name: _unread(name, info) for name, number in closids.items() if number is None}
    known = [number for number in closids.values() if number is not None]
    counts = set((info.get(COUNTERS) or "").split()) >= COUNTED
    return Hardware(cache, bandwidth, min(known, default=None), counts, lacks)


def vendor_of(cpuinfo: str) -> Vendor:
    """Return the vendor of the bandwidth unit, from the text of `/proc/cpuinfo`."""
    name = next((line for line in cpuinfo[:CPUINFO_BYTES].splitlines() if line.startswith("vendor_id")), "")
    return "amd" if name.rpartition(":")[2].strip() in EIGHTHS_VENDORS else "intel"


def _cache(whole: Mapping[int, int], info: Mapping[str, str | None], lacks: dict[str, str]) -> CacheHardware | None:
    if not whole:
        lacks[CACHE] = "resctrl has no line L3 (with CDP it has L3CODE and L3DATA)"
        return None
    mask, least = _number(info.get(MASK), 16, most=1 << 64), _number(info.get(LEAST_BITS), 10)
    if mask is None or least is None:
        lacks[CACHE] = _unread(MASK if mask is None else LEAST_BITS, info)
        return None
    if mask & (mask + 1):
        lacks[CACHE] = f"info/{MASK} {mask:x} is not one block of ways from the first on"
        return None
    return CacheHardware(frozenset(whole), mask, least)


def _bandwidth(
    whole: Mapping[int, int], info: Mapping[str, str | None], vendor: Vendor, lacks: dict[str, str]
) -> BandwidthHardware | None:
    if not whole:
        lacks[BANDWIDTH] = "resctrl has no line MB"
        return None
    if any(most > MOST_UNITS for most in whole.values()):
        lacks[BANDWIDTH] = "resctrl is mounted with mba_MBps; percents need it without"
        return None
    # AMD's least is 0, and Intel's never.
    least, step = _number(info.get(LEAST_BANDWIDTH), 10, least=0), _number(info.get(STEP), 10)
    if least is None or step is None:
        lacks[BANDWIDTH] = _unread(LEAST_BANDWIDTH if least is None else STEP, info)
        return None
    return BandwidthHardware(frozenset(whole), vendor, max(1, least), step)


def _number(text: str | None, base: int, *, least: int = 1, most: int = MOST_NUMBER) -> int | None:
    word = (text or "").strip()
    if len(word) > MOST_DIGITS or not (word.isascii() and word.isalnum()):
        return None
    try:
        number = int(word, base)
    except ValueError:
        return None
    return number if least <= number <= most else None


def _unread(name: str, info: Mapping[str, str | None]) -> str:
    text = info.get(name)
    return f"info/{name} " + ("is missing" if text is None else f"says {text.strip()[:MOST_DIGITS]!r}")
