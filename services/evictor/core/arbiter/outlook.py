"""Who would go next: each plugin's order of victims as things stand, whether its pressure is there or not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.evictor.core.arbiter.guards import Refusal, Surroundings, allowed
from services.evictor.core.plugin import Candidate, Pressure

LONGEST_LINE = 100
"""Places shown of one plugin's order."""


@dataclass(frozen=True, slots=True)
class Place:
    """A pod's place in a plugin's order; `spared` says which guard keeps it there."""

    candidate: Candidate
    spared: Refusal | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """One plugin: the pressure that it sees, or the one that it would see at its threshold, and who would go."""

    pressure: Pressure
    met: bool
    line: tuple[Place, ...]


def outlook(pressure: Pressure, candidates: Sequence[Candidate], around: Surroundings, *, met: bool) -> Outlook:
    """The order with what the guards say of each pod now."""
    _, refusals = allowed(candidates, around)
    by_uid = {refusal.uid: refusal for refusal in refusals}
    line = tuple(Place(c, by_uid.get(c.pod.uid)) for c in candidates[:LONGEST_LINE])
    return Outlook(pressure, met, line)


def told(outlook: Outlook) -> dict[str, Any]:
    """As JSON values."""
    pressure = outlook.pressure
    return {
        "met": outlook.met,
        "hard": pressure.hard,
        "scope": pressure.scope,
        "observed": pressure.observed,
        "threshold": pressure.threshold,
        "below": pressure.below,
        "line": [
            {
                "pod": place.candidate.pod.key,
                "uid": place.candidate.pod.uid,
                "why": place.candidate.why.model_dump(mode="json"),
                "guard": None if place.spared is None else place.spared.why,
                "says": "" if place.spared is None else place.spared.says,
            }
            for place in outlook.line
        ],
    }
