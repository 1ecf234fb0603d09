"""The oracle knows what tenants will want next: the most that can run without ever taking from them.

It gives tenants what they want until the next frame, rounded up to whole cores, and offers the rest in batch pods. No
contender can know the next frame; its share of the oracle shows how much was left to gain.
"""

import math
from dataclasses import dataclass

from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import View
from sublet.replay.batch import POD_CORES
from sublet.replay.contender import Sizes
from sublet.replay.traces.frames import Trace

ORACLE = "oracle"
ROUNDING = 1e-12
"""Sums of use have an error in the last digit, for which no CPU more is needed."""


@dataclass(frozen=True, slots=True)
class OracleContender:
    """The oracle as a row of the comparison."""

    name: str = ORACLE
    pod_cores: float = POD_CORES

    def bounds(self, trace: Trace) -> Bounds:
        """See `Contender`."""
        return Bounds.of(trace.cpus, smt=trace.smt)

    def start(self, trace: Trace) -> "Oracle":  # noqa: ARG002
        """See `Contender`."""
        return Oracle(self.pod_cores)


@dataclass(slots=True)
class Oracle:
    """The oracle on one node. The replay sets `coming_cores` before it asks."""

    pod_cores: float
    coming_cores: float = 0.0
    """What tenants want from now to the next frame."""

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:  # noqa: ARG002
        """See `Decider`."""
        threads = 2 if view.bounds.smt else 1
        tenants = threads * math.ceil(self.coming_cores / threads - ROUNDING)
        rest = max(0, view.bounds.cpus - tenants)
        return Sizes(view.bounds.cpus - rest, rest, self.pod_cores * math.floor(rest / self.pod_cores + 1e-9))
