"""Pod words are what Koordinator's annotations say about one pod's isolation; what cannot be read says nothing.

Facts: docs/facts/koordinator-isolation.md#annotations-of-a-pod.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from shared.contracts.pod import Pod
from shared.core.pods.koord_qos import CPU_BURST
from shared.core.text.annotation_values import json_object
from shared.errors import Refused

BurstWord = Literal["none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"]
MOST_BURST_PERCENT = 10_000


@dataclass(frozen=True, slots=True)
class BurstWords:
    """What `koordinator.sh/cpuBurst` says; None where it says nothing usable."""

    policy: BurstWord | None = None
    percent: int | None = None


def burst_words(pod: Pod) -> BurstWords:
    """What a pod says about CPU burst."""
    text = pod.annotations.get(CPU_BURST)
    return _NO_BURST if text is None else _burst_words(text)


_NO_BURST = BurstWords()


@lru_cache(maxsize=4096)
def _burst_words(text: str) -> BurstWords:
    said = _object(text)
    policy = next((word for word in get_args(BurstWord) if word == said.get("policy")), None)
    return BurstWords(policy, _whole(said.get("cpuBurstPercent"), 1, MOST_BURST_PERCENT))


def _object(text: str) -> dict[str, Any]:
    try:
        return json_object(text)
    except Refused:
        return {}


def _whole(value: object, least: int, most: int) -> int | None:
    """A whole number within its bounds; true and false are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most else None
