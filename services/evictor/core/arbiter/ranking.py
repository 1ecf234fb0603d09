"""Ranks the pods that one plugin would evict next, whether its threshold is met or not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.evictor.core.arbiter.guards import Refusal, Surroundings, allowed
from services.evictor.core.plugin import Candidate, Pressure

MAX_RANKED = 100
"""Pods shown of one plugin's order."""


@dataclass(frozen=True, slots=True)
class RankedPod:
    """A pod in a plugin's order; `spared` names the guard that protects it."""

    candidate: Candidate
    spared: Refusal | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """One plugin: the pressure that it detects, or would detect at its threshold, and the pods that it would evict."""

    pressure: Pressure
    met: bool
    pods: tuple[RankedPod, ...]


def ranking_of(pressure: Pressure, candidates: Sequence[Candidate], around: Surroundings, *, met: bool) -> Ranking:
    """The order with what the guards say of each pod now."""
    _, refusals = allowed(candidates, around)
    by_uid = {refusal.uid: refusal for refusal in refusals}
    return Ranking(pressure, met, tuple(RankedPod(c, by_uid.get(c.pod.uid)) for c in candidates[:MAX_RANKED]))


def ranking_json(ranking: Ranking) -> dict[str, Any]:
    """The ranking as JSON values."""
    pressure = ranking.pressure
    return {
        "met": ranking.met,
        "hard": pressure.hard,
        "scope": pressure.scope,
        "observed": pressure.observed,
        "threshold": pressure.threshold,
        "below": pressure.below,
        "line": [
            {
                "pod": ranked.candidate.pod.key,
                "uid": ranked.candidate.pod.uid,
                "why": ranked.candidate.why.model_dump(mode="json"),
                "guard": None if ranked.spared is None else ranked.spared.why,
                "says": "" if ranked.spared is None else ranked.spared.says,
            }
            for ranked in ranking.pods
        ],
    }
