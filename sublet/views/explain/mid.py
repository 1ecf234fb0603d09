"""What the node offers as mid-cpu and mid-memory, and the terms of both amounts."""

from collections.abc import Iterator, Mapping
from typing import Any

from shared.contracts.pod import MID_CPU, MID_MEMORY, Pod
from shared.core.pods.koord_qos import priority_class
from sublet.views.facts import NodeFacts
from sublet.views.figures import cores, memory

Document = dict[str, Any]


def mid_part(facts: NodeFacts, pod: Pod) -> Document | None:
    """What the reporter says of the offer, for a pod of class mid; None where none is made, or nobody tells."""
    if priority_class(pod.labels, pod.priority) != "koord-mid":
        return None
    found: Document | None = facts.answered("reporter", "mid", None)
    return found


def mid_lines(mid: Document | None) -> Iterator[str]:
    """One line for each resource, as the smallest of its bounds."""
    if mid is None:
        return
    cpu, in_bytes = mid["cpu"], mid["memory"]
    yield f"    node offers {MID_CPU} {mid['cpu_millis']}: {_bounds(mid, cpu, _cores)}"
    yield f"    node offers {MID_MEMORY} {mid['memory_bytes']}: {_bounds(mid, in_bytes, memory)}"
    if mid["mode"] == "prediction":
        yield f"      pods that are known for long enough: {mid['known_pods']}, for too short: {mid['new_pods']}"


def _bounds(mid: Mapping[str, Any], terms: Mapping[str, Any], words: Any) -> str:
    wanted = f"a fixed part of {words(terms['capacity'])}"
    if mid["mode"] == "prediction":
        wanted = (
            f"prod pods lend {words(terms['prod_reclaimable'])}"
            f" + {mid['unallocated_percent']} % of {words(terms['unallocated'])} that nobody asked for"
        )
    return f"{mid['mode']}, {wanted}, at most {words(terms['unused'])} unused and {words(terms['at_most'])} in all"


def _cores(millis: int) -> str:
    return cores(millis / 1000)
