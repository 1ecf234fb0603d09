"""Reads Koordinator's annotations about one pod's isolation; an unreadable annotation counts as missing.

Facts: docs/facts/koordinator-isolation.md#annotations-of-a-pod.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

from shared.contracts.pod import Pod
from shared.core.pods.koord_qos import CPU_BURST, MEMORY_QOS
from shared.core.text.annotation_values import json_object
from shared.errors import Refused

BurstWord = Literal["none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"]
MemoryWord = Literal["none", "auto", "default"]
MOST_BURST_PERCENT = 10_000
MOST_QUOTA_PERCENT, MOST_BUDGET_S = 1 << 31, 1 << 31
MEMORY_FIELDS: Mapping[str, tuple[str, int, int]] = {
    "minLimitPercent": ("min_percent", 0, 100),
    "lowLimitPercent": ("low_percent", 0, 100),
    "throttlingPercent": ("throttle_percent", 0, 100),
    "wmarkRatio": ("wmark_ratio", 0, 100),
    "wmarkScalePermill": ("wmark_scale_permill", 1, 1000),
    "wmarkMinAdj": ("wmark_min_adj", -25, 50),
}
"""Fields of `koordinator.sh/memoryQOS` with ours, and their bounds."""


@dataclass(frozen=True, slots=True)
class BurstWords:
    """Content of `koordinator.sh/cpuBurst`; None for unusable values."""

    policy: BurstWord | None = None
    percent: int | None = None
    quota_percent: int | None = None
    """Most that its quota may become, in percent of the limit."""
    budget_s: int | None = None
    """How long it may use that; -1: without end."""


@dataclass(frozen=True, slots=True)
class MemoryWords:
    """Content of `koordinator.sh/memoryQOS`: `fields` of a MemoryQos by name."""

    policy: MemoryWord | None = None
    fields: Mapping[str, int] = field(default_factory=dict)


def burst_words(pod: Pod) -> BurstWords:
    """Return a pod's annotation about CPU burst."""
    text = pod.annotations.get(CPU_BURST)
    return _NO_BURST if text is None else _burst_words(text)


def memory_words(pod: Pod) -> MemoryWords:
    """Return a pod's annotation about its memory."""
    text = pod.annotations.get(MEMORY_QOS)
    return _NO_MEMORY if text is None else _memory_words(text)


_NO_BURST, _NO_MEMORY = BurstWords(), MemoryWords()


@lru_cache(maxsize=4096)
def _burst_words(text: str) -> BurstWords:
    said = _object(text)
    policy = next((word for word in get_args(BurstWord) if word == said.get("policy")), None)
    return BurstWords(
        policy,
        _whole(said.get("cpuBurstPercent"), 1, MOST_BURST_PERCENT),
        _whole(said.get("cfsQuotaBurstPercent"), 0, MOST_QUOTA_PERCENT),
        _whole(said.get("cfsQuotaBurstPeriodSeconds"), -1, MOST_BUDGET_S),
    )


@lru_cache(maxsize=4096)
def _memory_words(text: str) -> MemoryWords:
    said = _object(text)
    policy = next((word for word in get_args(MemoryWord) if word == said.get("policy")), None)
    read = {ours: _whole(said.get(name), low, high) for name, (ours, low, high) in MEMORY_FIELDS.items()}
    return MemoryWords(policy, {name: value for name, value in read.items() if value is not None})


def _object(text: str) -> dict[str, Any]:
    try:
        return json_object(text)
    except Refused:
        return {}


def _whole(value: object, least: int, most: int) -> int | None:
    """A whole number within its bounds; true and false are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most else None
