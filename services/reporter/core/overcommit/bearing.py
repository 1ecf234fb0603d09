"""Tracks what a node can bear over time: it falls within seconds of a load, and rises long after the load has gone.

Facts: docs/facts/safety-rules.md#over-commitment-follows-load-not-spikes.
"""

import math
from collections import deque
from dataclasses import dataclass

from services.reporter.core.overcommit.bearable import LoadRules, ResourceLoad, bearable_ratio
from services.reporter.core.overcommit.usage import PodsDemand

PERCENTILE = 0.95
SLOTS = 60
"""Uses that are kept of a window."""
STEP = 0.05
"""A ratio is reported in steps, because each is a write to the API server and changes what the scheduler sees."""


@dataclass(frozen=True, slots=True)
class BearingRules:
    """Over how long uses are looked at, how long the lowest ratio holds, and how full the resource may become."""

    window_s: float
    hold_s: float
    load: LoadRules


class Bearing:
    """Of one resource."""

    def __init__(self, rules: BearingRules) -> None:
        self._rules = rules
        self._uses: deque[tuple[float, int]] = deque()
        self._lowest: deque[tuple[float, float]] = deque()
        self._since_s: float | None = None

    def next(self, demand: PodsDemand, allocatable: int, now_s: float) -> float | None:
        """The ratio that can be borne, in whole steps; None before a whole window was seen."""
        rules = self._rules
        self._since_s = now_s if self._since_s is None else self._since_s
        # The largest within a slot: a percentile of more values is no better, and costs more.
        slot_s = rules.window_s / SLOTS
        if self._uses and now_s - self._uses[-1][0] < slot_s:
            self._uses[-1] = (self._uses[-1][0], max(self._uses[-1][1], demand.usage))
        else:
            self._uses.append((now_s, demand.usage))
        while self._uses[0][0] <= now_s - rules.window_s:
            self._uses.popleft()
        ratio = bearable_ratio(ResourceLoad(demand.request, self._usual, allocatable), rules.load)
        while self._lowest and self._lowest[-1][1] >= ratio:
            self._lowest.pop()
        self._lowest.append((now_s, ratio))
        while self._lowest[0][0] <= now_s - rules.hold_s:
            self._lowest.popleft()
        if now_s - self._since_s < rules.window_s:
            return None
        held = math.floor(round(self._lowest[0][1] / STEP, 6)) * STEP
        return max(held, _requested(demand, allocatable))

    @property
    def _usual(self) -> int:
        """The use that all but the few largest stay below."""
        ordered = sorted(used for _, used in self._uses)
        return ordered[math.ceil(len(ordered) * PERCENTILE) - 1]


def _requested(demand: PodsDemand, allocatable: int) -> float:
    """Return the ratio below which the node would report less than its pods were sold: kubelet would refuse them
    when it restarts, and no new pod comes at this ratio either."""
    return math.ceil(round(demand.request / allocatable * 100, 6)) / 100 if allocatable > 0 else 1.0
