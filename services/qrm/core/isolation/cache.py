"""Cache shares say which part of the L3 cache, and how much memory bandwidth, the tasks of a class may use.

Facts: docs/facts/koordinator-isolation.md#caches-and-memory-bandwidth.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from shared.contracts.pod import QosClass

CACHE, BANDWIDTH = "L3", "MB"
PREFIX = "sublet-"
"""Groups whose names begin so are ours."""
MOST_LINES, MOST_DOMAINS, MOST_DIGITS = 64, 1024, 16
WHOLE_PERCENT = 100
DIE_EIGHTHS = 160
"""Bandwidth of a die where the kernel counts in eighths of GB/s (AMD): four fifths of 25 GB/s."""
MOST_EIGHTHS = 1 << 16
"""More than any die has: a root group that says more counts in MB/s (mounted with `mba_MBps`), and names no bound."""

Schemata = Mapping[str, Mapping[int, int]]
"""Masks of ways, and bandwidths, by resource and domain."""


@dataclass(frozen=True, slots=True)
class CacheShare:
    """One class's part: from the first to the last percent of the ways, and a percent of the bandwidth."""

    start_percent: int = 0
    end_percent: int = 100
    bandwidth_percent: int = 100


@dataclass(frozen=True, slots=True)
class CacheBounds:
    """What the hardware takes at least, and in which steps."""

    least_ways: int = 1
    bandwidth_step: int = 10
    least_bandwidth: int = 10


def cache_group(qos: QosClass) -> str:
    """The name of a class's group."""
    return f"{PREFIX}{qos.replace('_', '-')}"


def read_schemata(text: str) -> Schemata:
    """What the kernel's text says of cache and bandwidth; other lines, and what is no number, are passed over."""
    found: dict[str, dict[int, int]] = {}
    for line in text.splitlines()[:MOST_LINES]:
        name, _, rest = line.strip().partition(":")
        if name in (CACHE, BANDWIDTH):
            found[name] = dict(_domains(rest, 16 if name == CACHE else 10))
    return found


def _domains(text: str, base: int) -> Iterator[tuple[int, int]]:
    for part in text.split(";")[:MOST_DOMAINS]:
        domain, _, value = part.strip().partition("=")
        if domain.isascii() and domain.isdigit() and len(domain) + len(value) <= MOST_DIGITS:
            try:
                yield int(domain), int(value, base)
            except ValueError:
                continue


def schemata_of(share: CacheShare, whole: Schemata, bounds: CacheBounds) -> Schemata:
    """What a class gets of what the root group has; a mask that the formula does not know stays whole."""
    masks = {domain: cache_mask(share, mask, bounds.least_ways) for domain, mask in whole.get(CACHE, {}).items()}
    widths = {domain: bandwidth(share, most, bounds) for domain, most in whole.get(BANDWIDTH, {}).items()}
    return {name: values for name, values in ((CACHE, masks), (BANDWIDTH, widths)) if values}


def cache_mask(share: CacheShare, whole: int, least_ways: int) -> int:
    """The ways from start to end, both rounded up; never fewer than the hardware takes."""
    ways = whole.bit_length()
    if whole != (1 << ways) - 1:  # ways that are not one block from the first on are somebody else's business
        return whole
    end = max(-(-ways * share.end_percent // WHOLE_PERCENT), min(least_ways, ways))
    start = min(-(-ways * share.start_percent // WHOLE_PERCENT), end - min(least_ways, ways))
    return (1 << end) - (1 << start)


def bandwidth(share: CacheShare, most: int, bounds: CacheBounds) -> int:
    """The bandwidth in the kernel's unit: percent in whole steps, or eighths of GB/s where the root has those."""
    if share.bandwidth_percent >= WHOLE_PERCENT or most > MOST_EIGHTHS:
        return most
    if most > WHOLE_PERCENT:
        return max(1, DIE_EIGHTHS * share.bandwidth_percent // WHOLE_PERCENT)
    step = max(1, bounds.bandwidth_step)
    return min(most, max(bounds.least_bandwidth, -(-share.bandwidth_percent // step) * step))


def without_effect(shares: Iterable[CacheShare], whole: Schemata) -> list[str]:
    """Which parts of shares this machine's control has no way to follow, and why."""
    found, own = [], list(shares)
    if CACHE not in whole and any((one.start_percent, one.end_percent) != (0, WHOLE_PERCENT) for one in own):
        found.append("shares of the cache: resctrl has no line L3 (with CDP it has L3CODE and L3DATA)")
    if any(one.bandwidth_percent < WHOLE_PERCENT for one in own):
        widths = whole.get(BANDWIDTH, {})
        if not widths:
            found.append("shares of the memory bandwidth: resctrl has no line MB")
        elif any(most > MOST_EIGHTHS for most in widths.values()):
            found.append("shares of the memory bandwidth: resctrl is mounted with mba_MBps; percents need it without")
    return found


def schemata_lines(schemata: Schemata, now: Schemata) -> list[str]:
    """The lines to write, one a resource that differs."""
    return [f"{name}:{_text(name, values)}" for name, values in sorted(schemata.items()) if now.get(name) != values]


def _text(name: str, values: Mapping[int, int]) -> str:
    return ";".join(f"{domain}={value:x}" if name == CACHE else f"{domain}={value}"
                    for domain, value in sorted(values.items()))  # fmt: skip
