"""Schemata are the lines that describe what a group may use of caches and bandwidth.

Facts: docs/facts/resctrl.md#lines.
"""

from collections.abc import Iterator, Mapping

from services.qrm.core.resctrl.hardware import BANDWIDTH, CACHE, BandwidthHardware, CacheHardware, Hardware, Resource
from shared.errors import Refused

MOST_LINES, MOST_DOMAINS, MOST_DIGITS = 64, 1024, 16

Values = Mapping[int, int]
"""Masks of ways, or bandwidths, by domain."""
Schemata = Mapping[str, Values]
"""Values by resource."""


def read_schemata(text: str) -> Schemata:
    """Parse cache and bandwidth from the kernel's text; other lines, and non-numbers, are skipped."""
    found: dict[str, dict[int, int]] = {}
    for line in text.splitlines()[:MOST_LINES]:
        name, _, rest = line.strip().partition(":")
        if name in (CACHE, BANDWIDTH):
            pairs = (_pair(part, name) for part in rest.split(";")[:MOST_DOMAINS])
            found[name] = dict(pair for pair in pairs if pair is not None)
    return found


def schemata_line(resource: Resource, values: Values) -> str:
    """The line that gives these values."""
    form = "x" if resource == CACHE else "d"
    return f"{resource}:{';'.join(f'{domain}={value:{form}}' for domain, value in values.items())}"


def differs(wanted: Values, now: Values) -> bool:
    """Whether a write would change anything."""
    return any(now.get(domain) != value for domain, value in wanted.items())


def checked_masks(line: str, cache: CacheHardware) -> Values:
    """The masks of a line that this machine takes.

    Raises:
        Refused: it takes the line not; the reason is the rule's name.
    """
    masks = dict(_pairs(line, CACHE))
    for domain, mask in masks.items():
        _check_domain(line, domain, cache.domains)
        if mask & ~cache.mask:
            raise Refused(f"{line}: mask {mask:x} of domain {domain} is not within {cache.mask:x}",
                          reason="mask_too_big")  # fmt: skip
        if not is_one_run(mask):
            raise Refused(f"{line}: the ways {mask:x} of domain {domain} are not one block", reason="mask_gap")
        if mask.bit_count() < cache.least_bits:
            raise Refused(f"{line}: mask {mask:x} of domain {domain} has fewer than {cache.least_bits} ways",
                          reason="mask_too_small")  # fmt: skip
    return masks


def checked_bandwidths(line: str, bandwidth: BandwidthHardware) -> Values:
    """The bandwidths of a line that this machine takes, in its steps, rounded up.

    Raises:
        Refused: it takes the line not; the reason is the rule's name.
    """
    widths = dict(_pairs(line, BANDWIDTH))
    for domain, width in widths.items():
        _check_domain(line, domain, bandwidth.domains)
        if width < bandwidth.least:
            raise Refused(f"{line}: {width} of domain {domain} is below the least, {bandwidth.least}",
                          reason="mb_too_small")  # fmt: skip
    return {domain: -(-width // bandwidth.step) * bandwidth.step for domain, width in widths.items()}


def line_to_write(resource: Resource, values: Values, now: Schemata, hardware: Hardware) -> str | None:
    """Return the checked line that gives a group these values; None if it has them already, or the machine has no
    such line.

    Raises:
        Refused: this machine does not accept them.
    """
    line = schemata_line(resource, values)
    if resource == CACHE and hardware.cache is not None:
        checked = checked_masks(line, hardware.cache)
    elif resource == BANDWIDTH and hardware.bandwidth is not None:
        checked = checked_bandwidths(line, hardware.bandwidth)
    else:
        return None
    return schemata_line(resource, checked) if differs(checked, now.get(resource, {})) else None


def is_one_run(mask: int) -> bool:
    """Whether the ones of a mask have no gap; none at all have none."""
    lowest = mask & -mask
    return mask & (mask + lowest) == 0


def _pairs(line: str, resource: Resource) -> Iterator[tuple[int, int]]:
    name, colon, rest = line.partition(":")
    if not colon or name != resource:
        raise Refused(f"{line}: want a line that begins with {resource}:", reason="bad_prefix")
    seen = set()
    for part in rest.split(";"):
        pair = _pair(part, resource)
        if pair is None or pair[0] in seen:
            raise Refused(f"{line}: want each domain once as DOMAIN=NUMBER, not {part!r}", reason="bad_line")
        seen.add(pair[0])
        yield pair


def _pair(part: str, resource: str) -> tuple[int, int] | None:
    domain, _, value = part.strip().partition("=")
    if max(len(domain), len(value)) > MOST_DIGITS or not (domain.isascii() and domain.isdigit() and value.isalnum()):
        return None
    try:
        return int(domain), int(value, 16 if resource == CACHE else 10)
    except ValueError:
        return None


def _check_domain(line: str, domain: int, domains: frozenset[int]) -> None:
    if domain not in domains:
        there = ", ".join(map(str, sorted(domains)))
        raise Refused(f"{line}: this machine has no domain {domain}, but {there or 'none'}", reason="bad_domain")
