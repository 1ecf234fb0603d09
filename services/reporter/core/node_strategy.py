"""Reads what a Node declares about its own colocation, in an annotation and labels, which override the
configuration.

The Node is read whatever it contains: a value that cannot be followed leaves the configured one in force, and is named
in `unread`. A Node may switch its offer off but never on, because the right to annotate a Node is not the right to sell
it.

Facts: docs/facts/koordinator-batch.md#strategy-of-a-single-node.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.core.text.json_text import read_json_object
from shared.errors import Refused

STRATEGY = "node.koordinator.sh/colocation-strategy"
CPU_RECLAIM_RATIO = "node.koordinator.sh/cpu-reclaim-ratio"
MEMORY_RECLAIM_RATIO = "node.koordinator.sh/memory-reclaim-ratio"
MAX_STRATEGY_BYTES = 4096
MAX_DEGRADE_MINUTES = 60
"""As the settings: older figures say nothing of what is idle now."""
MOST_UNREAD = 10
"""More wrong values than this are not named: the first ones say enough."""


@dataclass(frozen=True, slots=True)
class _Whole:
    """A whole number of a range, and what it is called here."""

    name: str
    least: int = 0
    most: int = 100

    def follows(self, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most

    @property
    def wish(self) -> str:
        return f"a whole number from {self.least} to {self.most}"


@dataclass(frozen=True, slots=True)
class _Word:
    """One of some words, and what it is called here."""

    name: str
    words: tuple[str, ...]

    def follows(self, value: object) -> bool:
        return value in self.words

    @property
    def wish(self) -> str:
        return " or ".join(self.words)


_BATCH_KEYS: Mapping[str, _Whole | _Word] = {
    "cpuReclaimThresholdPercent": _Whole("cpu_reclaim_percent"),
    "memoryReclaimThresholdPercent": _Whole("memory_reclaim_percent"),
    "cpuCalculatePolicy": _Word("cpu_policy", ("usage", "maxUsageRequest")),
    "memoryCalculatePolicy": _Word("memory_policy", ("usage", "request", "maxUsageRequest")),
    "batchCPUThresholdPercent": _Whole("cpu_at_most_percent"),
    "batchMemoryThresholdPercent": _Whole("memory_at_most_percent"),
}
_MID_KEYS: Mapping[str, _Whole | _Word] = {
    "midCPUThresholdPercent": _Whole("cpu_at_most_percent"),
    "midMemoryThresholdPercent": _Whole("memory_at_most_percent"),
    "midUnallocatedPercent": _Whole("unallocated_percent"),
    "midStaticCPUReservedPercent": _Whole("static_cpu_percent"),
    "midStaticMemoryReservedPercent": _Whole("static_memory_percent"),
}
_DEGRADE = {"degradeTimeMinutes": _Whole("minutes", 1, MAX_DEGRADE_MINUTES)}
_BATCH_RATIOS = {CPU_RECLAIM_RATIO: "cpu_reclaim_percent", MEMORY_RECLAIM_RATIO: "memory_reclaim_percent"}

_MID_RATIOS = {
    "node.koordinator.sh/mid-static-cpu-reserved-ratio": "static_cpu_percent",
    "node.koordinator.sh/mid-static-memory-reserved-ratio": "static_memory_percent",
}


@dataclass(frozen=True, slots=True)
class NodeOverride:
    """What a Node declares about itself; anything undeclared is as configured."""

    off: bool = False
    """Lends nothing, whatever is configured."""
    degrade_after_s: float | None = None
    batch: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the strategy for batch resources."""
    mid: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the strategy for mid resources."""
    unread: tuple[str, ...] = ()
    """Declarations that could not be followed for batch resources, and why."""
    unread_mid: tuple[str, ...] = ()
    """The same for mid resources; declarations that concern both are in both."""


def node_override(node: Mapping[str, Any]) -> NodeOverride:
    """Of a Node, as the API server has it; labels go before the annotation."""
    metadata = _map(node.get("metadata"))
    of_both: list[str] = []
    unread: list[str] = []
    unread_mid: list[str] = []
    said = _strategy(_map(metadata.get("annotations")).get(STRATEGY), of_both)
    labels = _map(metadata.get("labels"))
    minutes = _followed(said, _DEGRADE, of_both).get("minutes")
    return NodeOverride(
        off=_off(said.get("enable"), of_both),
        degrade_after_s=None if minutes is None else minutes * 60.0,
        batch=_followed(said, _BATCH_KEYS, unread) | _percents(labels, _BATCH_RATIOS, unread),
        mid=_mid(said, labels, unread_mid),
        unread=tuple([*of_both, *unread][:MOST_UNREAD]),
        unread_mid=tuple([*of_both, *unread_mid][:MOST_UNREAD]),
    )


def _strategy(text: object, unread: list[str]) -> Mapping[str, Any]:
    if not isinstance(text, str):
        return {}
    try:
        return read_json_object(text, what="strategy", max_bytes=MAX_STRATEGY_BYTES)
    except Refused as error:
        unread.append(f"{STRATEGY}: {str(error)[:160]}; what is configured holds")
        return {}


def _off(enable: object, unread: list[str]) -> bool:
    if enable is not None and not isinstance(enable, bool):
        unread.append(_problem(f"{STRATEGY}: enable", enable, "true or false"))
    return enable is False


def _mid(said: Mapping[str, Any], labels: Mapping[str, Any], unread: list[str]) -> dict[str, Any]:
    mode = said.get("midReclaimMode")
    if mode is not None and not isinstance(mode, str):
        unread.append(_problem(f"{STRATEGY}: midReclaimMode", mode, "static, or another word for prediction"))
    # Upstream knows one word; every other one means what holds without it.
    modes = {"mode": "static" if mode == "static" else "prediction"} if isinstance(mode, str) else {}
    return modes | _followed(said, _MID_KEYS, unread) | _percents(labels, _MID_RATIOS, unread)


def _followed(said: Mapping[str, Any], keys: Mapping[str, _Whole | _Word], unread: list[str]) -> dict[str, Any]:
    """Return the values that can be followed, by our names; null counts as undeclared."""
    found = {}
    for key, rule in keys.items():
        value = said.get(key)
        if rule.follows(value):
            found[rule.name] = value
        elif value is not None:
            unread.append(_problem(f"{STRATEGY}: {key}", value, rule.wish))
    return found


def _percents(labels: Mapping[str, Any], names: Mapping[str, str], unread: list[str]) -> dict[str, int]:
    """Ratios as whole percent, rounded down."""
    found = {}
    for label, name in names.items():
        text = labels.get(label)
        if text is None:
            continue
        ratio = _ratio(text)
        if ratio is None:
            unread.append(_problem(label, text, "a number from 0 to 1"))
        else:
            # Rounded first: 0.57 x 100 is a little less than 57 in binary fractions.
            found[name] = math.floor(round(ratio * 100, 9))
    return found


def _ratio(text: object) -> float | None:
    try:
        ratio = float(text[:64]) if isinstance(text, str) else math.nan
    except ValueError:
        return None
    return ratio if 0 <= ratio <= 1 else None


def _problem(where: str, value: object, wish: str) -> str:
    return f"{where} {repr(value)[:64]}: want {wish}; what is configured holds"


def _map(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}
