"""How many times as fast a node's CPU is as the one that amounts of batch-cpu mean, by its annotation.

Facts: docs/facts/koordinator-batch.md#annotations-of-a-node.
"""

import math
from collections.abc import Mapping
from typing import Any

NORMALIZATION_RATIO = "node.koordinator.sh/cpu-normalization-ratio"
MAX_RATIO = 10.0
"""No CPU is ten times as fast as the slowest one of a cluster: such a ratio is a slip."""


def normalization_ratio(text: str) -> float:
    """The ratio that a text says; upstream amplifies alone, so that one of 1 or less changes nothing.

    Raises:
        ValueError: no number, or beyond the bound.
    """
    ratio = float(text[:64])
    if not math.isfinite(ratio) or ratio > MAX_RATIO:
        raise ValueError(f"{text[:64]!r}: want a number up to {MAX_RATIO:g}")
    return max(1.0, ratio)


def node_normalization_ratio(node: Mapping[str, Any]) -> float:
    """The ratio of a Node; 1 where its annotation is not there or cannot be read."""
    metadata = node.get("metadata")
    of_node = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    text = of_node.get(NORMALIZATION_RATIO) if isinstance(of_node, Mapping) else None
    try:
        return normalization_ratio(text) if isinstance(text, str) else 1.0
    except ValueError:
        return 1.0
