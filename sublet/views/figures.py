"""Numbers for people; an unknown figure is a dash, never a zero."""

import math
from datetime import UTC, datetime

UNKNOWN = "-"


def cores(value: float | None) -> str:
    """Cores with two decimals."""
    return UNKNOWN if value is None else f"{value:.2f}"


def memory(value: int | None) -> str:
    """Bytes in binary units with one decimal."""
    if value is None:
        return UNKNOWN
    amount, units = float(value), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{amount:.0f} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


WHOLE_FROM = 1000
"""Numbers from here on say nothing more behind the point."""


def value_text(value: object) -> str:
    """A number of a reason as people write it; what is no number as it is."""
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return number(value)
    return str(value)


def number(value: float | None) -> str:
    """A threshold or an observation of any unit, without needless digits."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return str(value)
    return f"{value:.0f}" if float(value).is_integer() or abs(value) >= WHOLE_FROM else f"{value:.3g}"


_BYTES = ("memory", "mem.", "Memory", "rootfs.used")
_CORES = ("cpu.suppression", "reclaimed_cpu")
_MILLIS = ("reclaimed_millicpu",)
_RATIOS = ("cpu.usage",)
_SECONDS = ("NICHealth",)


def amount(scope: str, value: float | None) -> str:
    """A figure of an eviction plugin in the unit of its scope: bytes, cores, percent or seconds."""
    if value is None or not math.isfinite(value):
        return number(value)
    if any(word in scope for word in _MILLIS):
        return f"{cores(value / 1000)} cores"
    if any(word in scope for word in _BYTES):
        return memory(int(value))
    if any(word in scope for word in _CORES):
        return f"{cores(value)} cores"
    if any(word in scope for word in _RATIOS):
        return f"{100 * value:.0f} %"
    return f"{number(value)} s" if scope in _SECONDS else number(value)


def moment(value: datetime) -> str:
    """Date and time of day with milliseconds and zone, in UTC."""
    utc = value.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


def moment_of(text: str) -> str:
    """The same of a time in ISO form."""
    return moment(datetime.fromisoformat(text))
