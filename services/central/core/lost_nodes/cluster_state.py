"""The state of the cluster, which decides whether central acts at all (docs/facts/katalyst-cluster.md#lost-agents).

The guards are stricter; this one names the state and sets the pace.
"""

from dataclasses import dataclass
from typing import Literal

from services.central.core.lost_nodes.rules import ACTIONS_PER_S, MAX_BAD_RATIO

State = Literal["Normal", "PartialDisruption", "FullDisruption"]

FEW_NODES = 2
"""So many nodes that are not ready are no disruption while others are ready."""


@dataclass(frozen=True, slots=True)
class Disruption:
    """The state of the cluster, and how many nodes may be acted on in a second."""

    state: State
    actions_per_s: float


def disruption(
    ready: int, not_ready: int, *, ratio: float = MAX_BAD_RATIO, actions_per_s: float = ACTIONS_PER_S
) -> Disruption:
    """Full without any ready node, partial with more than a few and more than `ratio` of all not ready."""
    if ready == 0 and not_ready > 0:
        return Disruption("FullDisruption", 0.0)
    if not_ready > FEW_NODES and not_ready / (ready + not_ready) > ratio:
        return Disruption("PartialDisruption", 0.0)
    return Disruption("Normal", actions_per_s)
