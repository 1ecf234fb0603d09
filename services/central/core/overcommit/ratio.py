"""The ratio by which a resource of a node is over-committed (docs/facts/katalyst-overcommit.md#ratio)."""

from dataclasses import dataclass
from typing import Literal

from shared.contracts.kube.overcommit import ratio_of


@dataclass(frozen=True, slots=True)
class EffectiveRatio:
    """The ratio that holds, at least 1, and what is wrong with the one that was set."""

    value: float = 1.0
    problem: Literal["ratio_unreadable"] | None = None


def effective_ratio(set_text: str | None, realtime_text: str | None) -> EffectiveRatio:
    """Return the smaller of the set ratio and what the node can bear; 1 if none is set.

    A node whose own figure is unreadable can bear nothing.
    """
    if set_text is None:
        return EffectiveRatio()
    given = ratio_of(set_text)
    if given is None:
        return EffectiveRatio(problem="ratio_unreadable")
    borne = given if realtime_text is None else ratio_of(realtime_text) or 0.0
    return EffectiveRatio(max(1.0, min(given, borne)))
