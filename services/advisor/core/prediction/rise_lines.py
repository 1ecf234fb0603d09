"""`RiseLines` bounds the need of the next round so that it is exceeded in a chosen part of the rounds.

A line says what is expected: the mean need, and a part of the need's distance from it. The whole of it: the need stays
what it is. Nothing: it goes back to the mean. Half of it lies between. Above each line the rises are counted, and each
gives a bound of its own; the lowest holds. A node that goes to and fro between two levels is bounded by the upper one,
a node whose level moves by its rises, and neither has to be told which it is.

A rise that only one round in many exceeds is told in two ways, of which the lower counts. By the rises themselves, with
some that were never seen among them, which fall off with the size of the machine: they decide while little is known,
and beyond the largest one. And by the mean of what rises above the 95th percentile exceed it by, as if their tail fell
off likewise: one jump of a restless node then says no more than it weighs.

Facts: docs/facts/targets.md#the-bound-of-the-policy-adaptive-where-cpus-are-shared.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from services.advisor.core.prediction.coverage import MAX_GAP_S
from services.advisor.core.prediction.histogram import CPU_CORES
from services.advisor.core.prediction.peak import MAX_SAMPLE_S

LINES = (1.0, 0.5, 0.0)
"""Parts of the distance from the mean that are expected to stay."""
MEAN_HALF_LIFE_S = 7200.0
UNSEEN_ROUNDS = 30.0
"""Weight of the rises that were never seen, and after how many rounds above the percentile its tail counts half."""
UNSEEN_CPU_RATIO = 1 / 32
"""Their mean, as a part of the machine."""
TAIL_RATIO = 0.05
"""The part of the rises beyond which the tail is told by its mean."""
TAIL_FACTOR = 1.25
"""Tails of bursts fall off more slowly than their mean excess says."""
FEW_ROUNDS, KNOWN_ROUNDS = 6.0, 5.0
"""The mean excess counts half with so many rises in the tail; the tail counts half once so many could be in it."""
LEAST_RISE_RATIO = 0.5
"""So much of what the need may rise by is kept above it, whatever the other lines say."""
MOST_SCALE = 1e12
"""Weights are counted in a unit that grows, so that old ones fade untouched; above this they are rescaled."""
Weights = tuple[float, ...]
"""By bucket, up to the largest rise."""


@dataclass(frozen=True, slots=True)
class SeenRises:
    """The rises above each line, by weight."""

    tails: tuple[Weights, ...] = ((),) * len(LINES)
    total: float = 0.0
    """Of the rises above any one of them, as all their weights in units of 1 / `scale`."""
    scale: float = 1.0
    _reaches: dict[tuple[int, float], tuple[float, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What was asked already: rows of a comparison that take the same risk ask the same."""

    def reaches_cores(self, cpus: int, caution: float) -> tuple[float, ...]:
        """By how much the need rises above each line in all but exp(-caution) of the rounds."""
        known = self._reaches.get((cpus, caution))
        if known is None:
            known = tuple([self._reach_cores(tail, cpus, caution) for tail in self.tails])
            self._reaches[cpus, caution] = known
        return known

    def with_rises(self, rises_cores: Sequence[float], scale: float) -> "SeenRises":
        """With one more above each line, in a unit that has grown to this scale."""
        tails = tuple([_added(tail, rise, scale) for tail, rise in zip(self.tails, rises_cores, strict=True)])
        return SeenRises(tails, self.total + scale, scale)

    def rescaled(self) -> "SeenRises":
        """The same weights in the unit of a rise now."""
        part = 1 / self.scale
        return SeenRises(tuple(tuple(weight * part for weight in tail) for tail in self.tails), self.total * part)

    def _reach_cores(self, tail: Weights, cpus: int, caution: float) -> float:
        unseen_cores = UNSEEN_CPU_RATIO * cpus
        rounds = self.total / self.scale
        # In the unit of the weights.
        unseen = UNSEEN_ROUNDS * self.scale
        goal = math.exp(-caution) * (self.total + unseen)
        seen = _seen_reach(tail, goal, unseen, unseen_cores)
        # Up to the percentile the tail says nothing: what it says there holds for less caution as well.
        at_percentile = -math.log(TAIL_RATIO)
        percentile, excess = _tail_of(tail, self.total, FEW_ROUNDS * self.scale)
        known = TAIL_RATIO * rounds / (TAIL_RATIO * rounds + KNOWN_ROUNDS)
        caution = max(caution, at_percentile)
        fitted = percentile + TAIL_FACTOR * (caution - at_percentile) * excess
        return min(seen, known * fitted + (1 - known) * unseen_cores * caution)


NO_RISES = SeenRises()


@dataclass(frozen=True, slots=True)
class RiseLines:
    """State for the tenants of one region, whatever risk is taken. Bounded by the number of buckets."""

    seen: SeenRises = NO_RISES
    mean_cores: float = 0.0
    mean_s: float = 0.0
    """Time that the mean stands for."""
    need_cores: float = 0.0
    at_s: float | None = None
    """When the last need was seen; None: what follows is no rise of it."""
    before: SeenRises = NO_RISES
    """The rises before the last one, which is in the need already: more need must not narrow the bound."""

    def observe(self, need_cores: float, now_s: float, half_life_s: float) -> "RiseLines":
        """The state after one more need; `half_life_s`: how fast rises are forgotten."""
        passed_s = self._passed_s(now_s)
        seen = self.seen if passed_s is None else self._with_rises(need_cores, passed_s, half_life_s)
        mean, mean_s = self._mean_with(need_cores, passed_s)
        return RiseLines(seen, mean, mean_s, need_cores, now_s, self.seen)

    def bound_cores(self, cpus: int, caution: float) -> float:
        """Return what the next need stays below in all but exp(-caution) of the rounds."""
        above = self.need_cores - self.mean_cores
        reaches = self.before.reaches_cores(cpus, caution)
        bound = min([self.mean_cores + part * above + reach for part, reach in zip(LINES, reaches, strict=True)])
        return max(bound, self.need_cores + LEAST_RISE_RATIO * reaches[0])

    def rise_cores(self, cpus: int, caution: float) -> float:
        """By how much the need itself may rise, however far it lies from the mean."""
        return self.before.reaches_cores(cpus, caution)[0]

    def _passed_s(self, now_s: float) -> float | None:
        """Time since the last need; None after a silence, or where the clock went back."""
        passed_s = math.inf if self.at_s is None else now_s - self.at_s
        return passed_s if 0 <= passed_s <= MAX_GAP_S else None

    def _with_rises(self, need_cores: float, passed_s: float, half_life_s: float) -> SeenRises:
        seen = self.seen if self.seen.scale < MOST_SCALE else self.seen.rescaled()
        above = self.need_cores - self.mean_cores
        rises = [need_cores - (self.mean_cores + part * above) for part in LINES]
        return seen.with_rises(rises, seen.scale * 2.0 ** (passed_s / half_life_s))

    def _mean_with(self, need_cores: float, passed_s: float | None) -> tuple[float, float]:
        """The mean with one more need, and the time that it stands for."""
        weight_s = 1.0 if passed_s is None else min(MAX_SAMPLE_S, passed_s)
        kept = 1.0 if passed_s is None else 2.0 ** (-passed_s / MEAN_HALF_LIFE_S)
        mean_s = kept * self.mean_s + weight_s
        # Two needs of one moment, of which none is known to have lasted.
        part = weight_s / mean_s if mean_s else 1.0
        return self.mean_cores + (need_cores - self.mean_cores) * part, mean_s


def _added(tail: Weights, rise_cores: float, weight: float) -> Weights:
    bucket = CPU_CORES.index(rise_cores) if rise_cores > 0 else 0
    if bucket >= len(tail):
        return (*tail, *[0.0] * (bucket - len(tail)), weight)
    return (*tail[:bucket], tail[bucket] + weight, *tail[bucket + 1 :])


def _seen_reach(tail: Weights, goal: float, unseen: float, unseen_cores: float) -> float:
    """The least rise that no more than `goal` exceed, of those that were seen and of the others."""
    ends, above = CPU_CORES.ends, 0.0
    for bucket in range(len(tail) - 1, -1, -1):
        end = ends[bucket]
        if above + unseen * math.exp(-end / unseen_cores) > goal:
            # Between the end of this bucket and that of the next: only the unseen rises become fewer there.
            reach = unseen_cores * math.log(unseen / (goal - above)) if above < goal else math.inf
            return max(end, reach if above == 0 else min(reach, ends[min(bucket + 1, len(ends) - 1)]))
        above += tail[bucket]
        if above > goal:
            return end
    return 0.0 if tail else max(0.0, unseen_cores * math.log(unseen / goal))


def _tail_of(tail: Weights, total: float, few: float) -> tuple[float, float]:
    """The 95th percentile of the rises, and the mean of what larger ones exceed it by, less while they are few."""
    ends, above, moment = CPU_CORES.ends, 0.0, 0.0
    for bucket in range(len(tail) - 1, -1, -1):
        weight = tail[bucket]
        if above + weight > TAIL_RATIO * total:
            return ends[bucket], (moment - above * ends[bucket]) / (above + few)
        above += weight
        moment += weight * ends[bucket]
    return 0.0, 0.0
