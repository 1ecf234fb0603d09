"""The CPU quotas of a pod's containers, and what decides their next step."""

from collections.abc import Iterator
from typing import Any

from shared.contracts.pod import Pod
from sublet.views.facts import NodeFacts

Document = dict[str, Any]


def burst_part(facts: NodeFacts, pod: Pod) -> Document | None:
    """What qrm says of the pod's quotas; None where they do not move, or nobody tells."""
    found = facts.answered("qrm", "quota_burst", None)
    rows = [] if found is None else [row for row in found["containers"] if row["uid"] == pod.uid]
    return {"share_pool": found["share_pool"], "containers": rows} if rows else None


def burst_lines(burst: Document | None) -> Iterator[str]:
    """One line for each container."""
    for row in () if burst is None else burst["containers"]:
        yield (
            f"    quota of {row['container']}: {row['quota_millis']} milli-cores, from {row['limit_millis']} to "
            f"{row['most_millis']}; {', '.join(_why(burst or {}, row))}"
        )


def _why(burst: Document, row: Document) -> Iterator[str]:
    throttled = row["throttled_ratio"]
    yield "throttled: not known" if throttled is None else f"throttled in {100 * throttled:.0f} % of its periods"
    yield f"share pool {burst['share_pool']}"
    if row["quota_millis"] > row["limit_millis"]:
        yield f"held for {row['held_s']:.0f} s"
    if row["budget_left_s"] is not None:
        yield f"budget left for {row['budget_left_s']:.0f} s"
