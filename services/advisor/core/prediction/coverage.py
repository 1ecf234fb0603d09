"""`Horizon` learns how far the need rises within a time, and checks whether it stays below as often as it claims.

One look ahead is open at a time: from what was expected when it opened to the largest need until it closes. The claim
is what the rises so far say of a further one: of n rises, k of them not above the bound, the next is not above it in k
of n + 1 cases. So a bound that many equal rises share claims more than its percentile, and a young one claims less.

That holds for rises of which none differs from the others. Those of a node's first minutes are larger, for services
start then and the usual level is not known yet: the bound that they leave claims too little for hours. Therefore what
came true beyond what was claimed so far, or failed to, corrects the next claim.

Facts: docs/facts/targets.md#the-margin-of-the-policy-adaptive.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from services.advisor.core.model.coverage import Coverage
from services.advisor.core.prediction.histogram import CPU_CORES, Histogram

SPANS_S = (10.0, 60.0, 300.0)
"""How far ahead the need is bounded, besides the next round."""
REMEMBERED_SPANS = 200.0
"""A rise counts half only after so many spans at least: of fewer cases nothing can be claimed to a point."""
CORRECTING_CASES = 12.0
"""In so many cases most of a claim's error is gone; fewer would follow the chance of single cases."""
MOST_CORRECTED = 4.0
"""A correction makes neither a miss nor a hit more than so many times less likely: no claim becomes a certainty."""
NO_RISES, NOTHING_CLAIMED = Histogram(), Coverage()
MAX_GAP_S = 600.0
"""After a longer silence, nothing is known about the time in between."""


class Claim(NamedTuple):
    """By how much the need rises at most, and in what part of the cases."""

    rise_cores: float = 0.0
    ratio: float = 0.0


def claim_of(rises: Histogram, percentile: float) -> Claim:
    """The lowest bound that holds for so many percent of the rises so far; no claim while there are none."""
    bucket = rises.bucket_at(percentile)
    if bucket is None:
        return Claim()
    below = math.fsum([weight for index, weight in rises.weights.items() if index <= bucket])
    return Claim(CPU_CORES.ends[bucket], below / (1 + rises.total))


def corrected(claim: Claim, coverage: Coverage) -> Claim:
    """The same bound, claimed by what such claims were worth so far."""
    if not claim.ratio:
        return claim
    error = (coverage.covered - coverage.claimed) / CORRECTING_CASES
    least, most = claim.ratio / MOST_CORRECTED, 1 - (1 - claim.ratio) / MOST_CORRECTED
    return Claim(claim.rise_cores, min(most, max(least, claim.ratio + error)))


@dataclass(frozen=True, slots=True)
class HorizonRules:
    """For what part of the looks ahead a bound is to hold, and how fast rises are forgotten."""

    percentile: float
    half_life_s: float


class Look(NamedTuple):
    """A look ahead that is open."""

    since_s: float
    last_s: float
    expected_cores: float
    claim: Claim
    largest_cores: float = 0.0


class Horizon(NamedTuple):
    """The rises within one span. Bounded by the buckets of its histogram."""

    rises: Histogram = NO_RISES
    coverage: Coverage = NOTHING_CLAIMED
    look: Look | None = None

    def observe(
        self, need_cores: float, expected_cores: float, now_s: float, span_s: float, rules: HorizonRules
    ) -> "Horizon":
        """The state after one more reading, from which so much is expected of the next ones."""
        look = self.look
        # A clock that went back, or a silence: the look ahead is over, and nothing is learned from it.
        if look is None or not 0 <= now_s - look.last_s <= MAX_GAP_S:
            return Horizon(self.rises, self.coverage, self._opened(expected_cores, now_s, rules))
        largest = max(look.largest_cores, need_cores)
        if now_s - look.since_s < span_s:
            longer = Look(look.since_s, now_s, look.expected_cores, look.claim, largest)
            return Horizon(self.rises, self.coverage, longer)
        aged = (now_s - look.since_s) / max(rules.half_life_s, REMEMBERED_SPANS * span_s)
        rise = max(0.0, largest - look.expected_cores)
        coverage = self.coverage
        if look.claim.ratio:
            coverage = coverage.observe(look.claim.ratio, rise <= look.claim.rise_cores, aged)
        learned = Horizon(self.rises.add(CPU_CORES.index(rise), 1.0, aged), coverage)
        return Horizon(learned.rises, coverage, learned._opened(expected_cores, now_s, rules))

    def _opened(self, expected_cores: float, now_s: float, rules: HorizonRules) -> Look:
        claim = corrected(claim_of(self.rises, rules.percentile), self.coverage)
        return Look(now_s, now_s, expected_cores, claim)
