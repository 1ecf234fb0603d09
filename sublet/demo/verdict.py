"""The demo's claims, and which of them this run has shown. Pure.

On a disturbed machine a claim about time may remain unshown, which is no failure of Sublet. What Sublet promises on
every machine (no event lost, nothing left behind) counts as a failure wherever it is violated.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sublet.demo.story import DemoStory

Outcome = Literal["shown", "not shown", "failed"]
HARM_FACTOR = 1.5
"""Batch work that slows the service by less leaves nothing for Sublet to mend."""


@dataclass(frozen=True, slots=True)
class DemoClaim:
    """One thing that the demo sets out to show."""

    text: str
    outcome: Outcome
    why: str = ""


def judge(story: DemoStory) -> list[DemoClaim]:
    """Every claim with its outcome."""
    late: Outcome = "not shown" if story.disturbed else "failed"
    busy = " on a machine that was disturbed" if story.disturbed else ""
    return [
        _latency(story, late, busy),
        _pool(story, late, busy),
        _eviction(story, late, busy),
        *always(story.eviction.lost if story.eviction else None, story.left),
    ]


def always(lost: Sequence[str] | None, left: Sequence[str]) -> list[DemoClaim]:
    """What holds on every machine. `lost` is None where no eviction came about."""
    events = "Every event of the eviction is in the stream, and once"
    rest = "The machine is left as it was found: no cgroup, no process"
    return [
        DemoClaim(events, "not shown", "there was no eviction")
        if lost is None
        else DemoClaim(events, "failed" if lost else "shown", "; ".join(lost)),
        DemoClaim(rest, "failed" if left else "shown", "; ".join(left)),
    ]


def failed(claims: Iterable[DemoClaim]) -> bool:
    """Whether Sublet failed in any."""
    return any(claim.outcome == "failed" for claim in claims)


def _latency(story: DemoStory, late: Outcome, busy: str) -> DemoClaim:
    text = "At the spike the service answers sooner under Sublet than beside unmanaged batch work"
    p99 = {case.name: case.summary()["spike_p99_ms"] for case in story.cases}
    alone, without, ours = (p99.get(name) for name in ("alone", "unmanaged", "sublet"))
    if alone is None or without is None or ours is None:
        why = "; ".join(story.broken.values()) or "a case has no answers"
        # Sublet has no part in the first two cases: where they break, it has not failed.
        return DemoClaim(text, late if alone is not None and without is not None else "not shown", why)
    figures = f"p99 {alone:.0f} ms alone, {without:.0f} ms without Sublet, {ours:.0f} ms with it"
    if without < HARM_FACTOR * alone:
        return DemoClaim(text, "not shown", f"unmanaged batch work hardly slowed the service here: {figures}")
    if ours < without:
        return DemoClaim(text, "shown", figures)
    return DemoClaim(text, late, figures + busy)


def _pool(story: DemoStory, late: Outcome, busy: str) -> DemoClaim:
    text = "The reclaimed pool gives CPUs back while the load spikes"
    case = next((case for case in story.cases if case.name == "sublet"), None)
    if case is None:
        return DemoClaim(text, late, "; ".join(story.broken.values()))
    if case.shrink_s is not None:
        return DemoClaim(text, "shown", f"{case.shrink_s * 1000:.0f} ms from the first request to the smaller CPU list")
    if not story.wide:
        return DemoClaim(text, late, f"it did not get wide before the spike{busy}, so there was nothing to give back")
    return DemoClaim(text, late, f"no smaller CPU list was read back during the spike{busy}")


def _eviction(story: DemoStory, late: Outcome, busy: str) -> DemoClaim:
    text = "A batch pod that takes the last memory is evicted"
    found = story.eviction
    if found is None:
        return DemoClaim(
            text, late, story.broken.get("eviction") or story.broken.get("start") or "it did not come to that"
        )
    if not found.succeeded:
        return DemoClaim(text, late, f"it was not gone in time{busy}")
    call = found.breach_to_call_s
    return DemoClaim(text, "shown", "" if call is None else f"{call * 1000:.0f} ms from the breach to the call")
