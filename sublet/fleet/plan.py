"""`FleetPlan` says how large a fleet is and how long it is watched; all of it is bounded."""

import math
from dataclasses import dataclass, replace

from shared.contracts.cluster.heard import MOST_SHARDS
from shared.errors import Refused

MOST_NODES, MOST_LEAVES = 100_000, 64
MOST_BEATS_PER_S = 20_000.0
"""What one process of simulated nodes can send on a usual machine."""
PERIOD_BOUNDS_S = (1.0, 60.0)
SECONDS_BOUNDS = (5.0, 3600.0)
NODES_A_CONNECTION = 500
LATE_PERIODS = 3
"""A node that has missed so many heartbeats is late, as by central's defaults: 30 s at one in 10 s."""
MOST_SILENT = 100
"""Central names so many nodes that are not ready in one answer."""


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """How many nodes, how often each says that it lives, over how many leaf servers, and how long each stage lasts."""

    nodes: int
    period_s: float = 10.0
    leaves: int = 2
    """Leaf servers between the nodes and the hub; on a cluster each node has its own."""
    seconds: float = 30.0
    """For which central is watched at rest."""
    cluster: bool = True
    """Whether there is an API server, with leases, agents' pods and the nodes' objects; else the bus alone."""
    shards: int = 1
    """Into how many shards the hub divides the heartbeats; so many centrals hear them."""

    @property
    def late_s(self) -> float:
        """A node silent for longer is late."""
        return LATE_PERIODS * self.period_s

    @property
    def connections(self) -> int:
        """To the leaves in turn; some nodes share one."""
        return max(self.leaves, math.ceil(self.nodes / NODES_A_CONNECTION))

    @property
    def silent(self) -> int:
        """So many nodes fall silent to be noticed: few enough that no guard takes it for one cause."""
        return min(MOST_SILENT, max(1, self.nodes // 100))

    def names(self) -> list[str]:
        """The nodes, as they would be named in order."""
        return [f"fleet-{number:05d}" for number in range(self.nodes)]


def checked(plan: FleetPlan) -> FleetPlan:
    """The plan, where this program can carry it out.

    Raises:
        Refused: something is out of bounds; says what, and what would do.
    """
    _within("--nodes", plan.nodes, (1, MOST_NODES))
    _within("--period", plan.period_s, PERIOD_BOUNDS_S, "s")
    _within("--leaves", plan.leaves, (1, MOST_LEAVES))
    _within("--seconds", plan.seconds, SECONDS_BOUNDS, "s")
    _within("--shards", plan.shards, (1, MOST_SHARDS))
    beats_per_s = plan.nodes / plan.period_s
    if beats_per_s > MOST_BEATS_PER_S:
        longer_s = plan.nodes / MOST_BEATS_PER_S
        raise Refused(
            f"{plan.nodes} nodes every {plan.period_s:g} s are {beats_per_s:.0f} heartbeats a second, at most "
            f"{MOST_BEATS_PER_S:.0f} can be sent from here: want --period {longer_s:g} or longer, or fewer nodes",
            reason="option",
        )
    # No leaf without a node behind it.
    return replace(plan, leaves=min(plan.leaves, plan.nodes))


def _within(option: str, value: float, bounds: tuple[float, float], unit: str = "") -> None:
    least, most = bounds
    if not least <= value <= most:
        raise Refused(f"{option} {value:g}: want {least:g} to {most:g}{f' {unit}' if unit else ''}", reason="option")
