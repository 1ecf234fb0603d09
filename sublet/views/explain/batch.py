"""What the node offers as batch-cpu and batch-memory, and the terms of both amounts."""

from collections.abc import Iterator, Mapping
from typing import Any

from shared.contracts.pod import BATCH_CPU, BATCH_MEMORY
from sublet.views.facts import NodeFacts
from sublet.views.figures import cores, memory

Document = dict[str, Any]
TAKEN_OFF = {
    "usage": ("system", "pods_used"),
    "request": ("reserved", "pods_requested"),
    "maxUsageRequest": ("system", "pods_larger"),
}
"""Of the terms, those that a policy takes off beside the margin."""


def batch_part(facts: NodeFacts) -> Document | None:
    """What the reporter says of the offer; None where none is made, or nobody tells."""
    found: Document | None = facts.answered("reporter", "batch", None)
    return found


def batch_lines(batch: Document | None) -> Iterator[str]:
    """One line for each resource, as the sum that it is."""
    if batch is None:
        return
    cpu, in_bytes = batch["cpu"], batch["memory"]
    yield f"    node offers {BATCH_CPU} {batch['cpu_millis']}: {_sum(cpu, _cores)}"
    yield f"    node offers {BATCH_MEMORY} {batch['memory_bytes']}: {_sum(in_bytes, memory)}"
    if (ratio := batch.get("cpu_normalization_ratio", 1)) != 1:
        yield f"      the CPU is {ratio:g} times as fast as the one that is asked for"
    for why in batch.get("unread", ()):
        yield f"      not read: {why}"


def _sum(terms: Mapping[str, Any], words: Any) -> str:
    off = ("margin", *TAKEN_OFF[terms["policy"]])
    parts = " - ".join(f"{name.replace('_', ' ')} {words(terms[name])}" for name in off)
    return f"{terms['policy']}, capacity {words(terms['capacity'])} - {parts}"


def _cores(millis: int) -> str:
    return cores(millis / 1000)
