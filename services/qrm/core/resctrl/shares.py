"""Cache shares say which part of the L3 cache, and how much memory bandwidth, the tasks of a class may use.

Facts: docs/facts/koordinator-isolation.md#caches-and-memory-bandwidth.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from services.qrm.core.resctrl.hardware import BANDWIDTH, CACHE, Hardware, Resource, Vendor
from services.qrm.core.resctrl.schemata import Values
from shared.contracts.pod import QosClass
from shared.errors import Refused

PREFIX = "sublet-"
"""Groups whose names begin so are ours."""
WHOLE_PERCENT = 100
PERCENT_STEP = 10
"""Intel's bandwidth is given in steps of ten percent; a machine with others rounds up further."""
DIE_EIGHTHS, ALL_EIGHTHS = 160, 2048
"""Bandwidth of a die where the kernel counts in eighths of GB/s (AMD): four fifths of 25 GB/s; and no bound."""


@dataclass(frozen=True, slots=True)
class CacheShare:
    """Share of one class: from the first to the last percent of the cache ways, and a percentage of the bandwidth.

    None: unset.
    """

    start_percent: int | None = 0
    end_percent: int | None = WHOLE_PERCENT
    bandwidth_percent: int | None = WHOLE_PERCENT


WHOLE = CacheShare()


@dataclass(frozen=True, slots=True)
class ResctrlRules:
    """The node's settings for resctrl; empty by default."""

    shares: Mapping[QosClass, CacheShare] = field(default_factory=dict)
    """By class; none: it is off."""
    steered: frozenset[QosClass] = frozenset()
    """Classes whose bandwidth is steered by what is measured, where that can be."""


NO_RESCTRL = ResctrlRules()


@dataclass(frozen=True, slots=True)
class WantedSchemata:
    """The values of each resource, and the resources for which the share has none."""

    values: Mapping[Resource, Values]
    impossible: tuple[Resource, ...] = ()


def cache_group(qos: QosClass) -> str:
    """The name of a class's group."""
    return f"{PREFIX}{qos.replace('_', '-')}"


def wanted_schemata(share: CacheShare, hardware: Hardware) -> WantedSchemata:
    """Return what a class gets of the resources that this machine controls."""
    values: dict[Resource, Values] = {}
    impossible: list[Resource] = []
    start, end, percent = share.start_percent, share.end_percent, share.bandwidth_percent
    if hardware.cache is not None and start is not None and end is not None:
        mask = cache_mask(start, end, ways_of(hardware.cache.mask))
        if mask.bit_count() >= hardware.cache.least_bits:
            values[CACHE] = dict.fromkeys(sorted(hardware.cache.domains), mask)
        else:
            impossible.append(CACHE)
    if hardware.bandwidth is not None and percent is not None:
        width = bandwidth_units(percent, hardware.bandwidth.vendor)
        if width:
            least = max(width, hardware.bandwidth.least)
            values[BANDWIDTH] = dict.fromkeys(sorted(hardware.bandwidth.domains), least)
        else:
            impossible.append(BANDWIDTH)
    return WantedSchemata(values, tuple(impossible))


def ways_of(mask: int) -> int:
    """How many ways the mask of all of them has.

    Raises:
        Refused: they are not one block from the first on.
    """
    if not mask or mask & (mask + 1):
        raise Refused(f"the mask of all ways, {mask:x}, is not one block from bit 0 on", reason="illegal_cbm")
    return mask.bit_length()


def cache_mask(start_percent: int, end_percent: int, ways: int) -> int:
    """Return the ways from start to end, both rounded up; 0: there is none between, or these are no percentages."""
    if not 0 <= start_percent < end_percent <= WHOLE_PERCENT:
        return 0
    start, end = (-(-ways * percent // WHOLE_PERCENT) for percent in (start_percent, end_percent))
    return (1 << end) - (1 << start)


def bandwidth_units(percent: int, vendor: Vendor) -> int:
    """Return a percentage of the bandwidth in the kernel's unit; 0: it is not in 1 to 100."""
    if not 1 <= percent <= WHOLE_PERCENT:
        return 0
    if vendor == "intel":
        return -(-percent // PERCENT_STEP) * PERCENT_STEP
    return ALL_EIGHTHS if percent == WHOLE_PERCENT else DIE_EIGHTHS * percent // WHOLE_PERCENT


def without_effect(shares: Mapping[QosClass, CacheShare], hardware: Hardware) -> Iterator[str]:
    """Which parts of shares this machine has no way to follow, and why."""
    own = shares.values()
    if any((one.start_percent, one.end_percent) != (0, WHOLE_PERCENT) for one in own) and CACHE in hardware.lacks:
        yield f"shares of the cache: {hardware.lacks[CACHE]}"
    if any(one.bandwidth_percent != WHOLE_PERCENT for one in own) and BANDWIDTH in hardware.lacks:
        yield f"shares of the memory bandwidth: {hardware.lacks[BANDWIDTH]}"
    for name, why in hardware.lacks.items():
        if name not in (CACHE, BANDWIDTH):
            yield f"how many groups resctrl can have: {why}"
    for qos, share in shares.items():
        if CACHE in wanted_schemata(share, hardware).impossible and hardware.cache is not None:
            ways, least = hardware.cache.mask.bit_length(), hardware.cache.least_bits
            yield (
                f"the share of the cache of {qos}: {share.start_percent} to {share.end_percent} % of {ways} ways are"
                f" fewer than the least, {least}; widen it"
            )
