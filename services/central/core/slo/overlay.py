"""Merges one strategy over another: declared values of the upper one win, everything else stays."""

from collections.abc import Iterator, Mapping
from typing import Any

from services.central.core.slo.keys import Strategy


def overlay(lower: Strategy, upper: Strategy) -> dict[str, Any]:
    """Merge fields of objects one by one, lists and values as a whole; null counts as undeclared (JSON over a Go
    object)."""
    merged = dict(lower)
    for name, value in upper.items():
        below = merged.get(name)
        if isinstance(value, Mapping):
            merged[name] = overlay(below if isinstance(below, Mapping) else {}, value)
        elif value is not None:
            merged[name] = value
    return merged


def leaves(strategy: Strategy, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with the names that lead to it, joined by dots; null is no value."""
    for name, value in strategy.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}.")
        elif value is not None:
            yield path, value
