"""Reads values of `spec.config`; errors name field, value and bound.

Rule: docs/facts/safety-rules.md#rule-7-bad-config-never-applies.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from services.central.core.kcc.targets import VALIDATE_FAILED
from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, canonical_resource
from shared.core.text.durations import NS_PER_S, duration_ns
from shared.errors import Refused

Reader = Callable[[str, Any], Any]
"""From a field's path and its value to Sublet's value."""

MAX_BYTES = 1 << 60
MAX_CORES = 8192
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%")


def refuse(path: str, value: Any, wanted: str) -> NoReturn:
    """Say what is wrong with a field.

    Raises:
        Refused: `ValidateFailed`.
    """
    raise Refused(f"spec.config.{path} = {value!r}: want {wanted}", reason=VALIDATE_FAILED)


def number(low: float, high: float, *, above: bool = False, whole: bool = False) -> Reader:
    """A number from `low` (with `above` more than it) to `high`."""
    wanted = (
        f"a {'whole ' if whole else ''}number {'above' if above else 'from'} {low:g} {'and up ' if above else ''}to"
    )

    def read(path: str, value: Any) -> Any:
        fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not fits or not math.isfinite(value) or not low <= value <= high or (above and value == low):
            refuse(path, value, f"{wanted} {high:g}")
        return value

    return read


def flag(path: str, value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        refuse(path, value, "true or false")
    return value


def choice(*words: str) -> Reader:
    """One of some words."""

    def read(path: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            refuse(path, value, " or ".join(words))
        return value

    return read


def span(low_s: float, high_s: float) -> Reader:
    """Seconds, from a duration such as "5m"."""

    def read(path: str, value: Any) -> float:
        try:
            seconds = duration_ns(value) / NS_PER_S if isinstance(value, str) else math.nan
        except Refused:
            seconds = math.nan
        if not low_s <= seconds <= high_s:
            refuse(path, value, f"a duration such as 5m, from {low_s:g}s to {high_s:g}s")
        return seconds

    return read


def texts(allowed: tuple[str, ...] | None = None) -> Reader:
    """A list of words, of a few where only these mean anything."""

    def read(path: str, value: Any) -> list[str]:
        fits = isinstance(value, list) and all(isinstance(word, str) for word in value)
        if not fits or (allowed is not None and not set(value) <= set(allowed)):
            refuse(path, value, "a list of text" if allowed is None else f"a list of {', '.join(allowed)}")
        return list(value)

    return read


def bytes_of(path: str, value: Any) -> int:
    """An amount of bytes as Kubernetes writes it."""
    try:
        found = parse_units(value) if isinstance(value, str | int) and not isinstance(value, bool) else -1
    except ValueError:
        found = -1
    if not 0 <= found <= MAX_BYTES:
        refuse(path, value, f"a quantity such as 10Gi, from 0 to {MAX_BYTES} bytes")
    return found


def cores(path: str, value: Any) -> float:
    """CPU as Kubernetes writes it, in cores."""
    try:
        millis = parse_millis(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1
    except ValueError:
        millis = -1
    if not 0 <= millis <= MAX_CORES * 1000:
        refuse(path, value, f"a quantity such as 4 or 500m, from 0 to {MAX_CORES} cores")
    return millis / 1000


def share_of(path: str, value: Any) -> float | None:
    """The ratio that a percentage means; None where the value is none."""
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    ratio = float(found[1]) / 100
    if ratio > 1:
        refuse(path, value, "at most 100%")
    return ratio


def thresholds(path: str, value: Any) -> dict[str, float]:
    """A ratio for each reclaimed resource, by today's names; either spelling may be written, but not both."""
    if not isinstance(value, Mapping):
        refuse(path, value, "a mapping of resource names to ratios")
    found: dict[str, float] = {}
    ratio = number(0, 1000, above=True)
    for name in sorted(value):
        known = canonical_resource(name)
        if known not in (RECLAIMED_CPU, RECLAIMED_MEMORY):
            refuse(f"{path}[{name}]", value[name], f"one of {RECLAIMED_CPU}, {RECLAIMED_MEMORY}, or the older names")
        amount = ratio(f"{path}[{name}]", value[name])
        if found.setdefault(known, amount) != amount:
            refuse(f"{path}[{name}]", amount, f"{found[known]!r} as its other name has, or one name alone")
    return found
