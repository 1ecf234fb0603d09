"""The chain of `sublet.views.explain.chain` as text, the newest decision first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sublet.views.explain.batch import batch_lines
from sublet.views.explain.burst import burst_lines
from sublet.views.explain.chain import Document
from sublet.views.explain.evictor import outlook_lines
from sublet.views.explain.mid import mid_lines
from sublet.views.explain.profile import profile_lines
from sublet.views.explain.sentence import ended_words
from sublet.views.figures import UNKNOWN, amount, cores, memory, moment_of, number, value_text


def lines(document: Document) -> Iterator[str]:
    """One line after the other."""
    name = f"{document['namespace']}/{document['name']}"
    if pod := document.get("pod"):
        yield f"pod {name}  {pod['qos']}  {pod['phase']}  uid {pod['uid']}"
        yield from _place_lines(document["placement"])
        yield from advice_lines(document["advice"])
        yield from batch_lines(document.get("batch"))
        yield from mid_lines(document.get("mid"))
        yield from burst_lines(document.get("burst"))
        yield from profile_lines(document.get("profile"))
        yield from _sample_lines(document["sample"])
        yield from outlook_lines(document)
    else:
        yield f"pod {name} is not on this node any more"
        if ended := document.get("ended"):
            yield f"  {ended_words(ended)}"
    if document["observes"]:
        yield "  observe: nothing is changed on this node; what stands here is what would be done"
    for eviction in document["evictions"]:
        yield from _eviction_lines(eviction)
    for service in document["silent"]:
        yield f"{service} does not answer: its part is not known"


def _place_lines(place: Document | None) -> Iterator[str]:
    if place is None:
        yield "  where: not known"
        return
    head = allocation_words(place)
    if place["pool"] is None:
        yield f"  in no pool yet ({head})"
    else:
        limit = place["pool_memory_limit_bytes"]
        pool = f"pool {place['pool']} ({place['pool_cpus'] or UNKNOWN})"
        yield f"  runs on CPUs {place['cpus'] or UNKNOWN} of {pool}" + (
            f", memory limit {memory(limit)}" if limit else ""
        )
        yield f"  by {head}"
    yield from reason_lines(place["why"])


def allocation_words(allocation: Mapping[str, Any]) -> str:
    """Which allocation, and its state."""
    lease = f"{allocation['lease_left_s']:.0f} s"
    return f"{allocation['ref']} {allocation['status']}, mode {allocation['mode']}, lease {lease}"


def advice_lines(advice: Document | None) -> Iterator[str]:
    """Sizes, offer, and the rule with its numbers."""
    if advice is None:
        yield "  advice: not known"
        return
    sizes = ", ".join(f"{pool} {cpus}" for pool, cpus in sorted(advice["pools"].items()))
    required = cores(advice["required_cores"])
    source = f" (from {', '.join(advice['based_on'])})" if advice["based_on"] else ""
    yield f"  because {advice['ref']} of policy {advice['policy']}{source}: {sizes} CPUs; tenants require {required}"
    yield (
        f"    offers {cores(advice['reclaimed_cpu_millis'] / 1000)} cores and "
        f"{memory(advice['reclaimed_memory_bytes'])} to reclaimed pods"
    )
    yield from reason_lines(advice["why"])


def _sample_lines(sample: Document | None) -> Iterator[str]:
    if sample is None:
        yield "  sample: not known"
        return
    yield f"  newest {sample['ref']} ({sample['trigger']}): the pod uses {usage_words(sample['pod'])}"
    for name, usage in sample["pools"].items():
        yield f"    {name}: {usage_words(usage)}"


def _eviction_lines(eviction: Document) -> Iterator[str]:
    step = f"  {eviction['step']}" if eviction.get("step") else ""
    scope = str(eviction["scope"])
    yield f"eviction {eviction['intent_id']}{step}"
    yield (
        f"  {eviction['plugin']}, scope {scope}: observed {amount(scope, eviction.get('observed'))}, "
        f"threshold {amount(scope, eviction.get('threshold'))}, grace {number(eviction.get('grace_s'))} s"
    )
    yield from reason_lines(eviction.get("why", []))
    for phase in eviction["phases"]:
        detail = f" ({phase['detail']})" if phase["detail"] else ""
        yield f"  {moment_of(phase['at'])}  {phase['phase']:<9}  {phase['message']}{detail}"
    for event_id in eviction.get("unpublished", []):
        yield f"  waits in the outbox: {event_id}"


def reason_lines(reasons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each rule that fired."""
    for reason in reasons:
        numbers = ", ".join(f"{key} {value_text(value)}" for key, value in reason.get("numbers", {}).items())
        yield f"    {reason['rule']}" + (f": {numbers}" if numbers else "")


def usage_words(usage: Mapping[str, Any]) -> str:
    """What a pool or a pod uses."""
    return (
        f"CPU {cores(usage['cpu_usage_cores'])}, load1 {cores(usage['load1'])}, memory {memory(usage['memory_bytes'])}"
    )
