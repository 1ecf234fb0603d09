"""`LearnedMargin` learns how much more tenants need a moment later, and keeps that margin above their need.

It tracks three things, each fading with a half-life. First, the usual level: a percentile of the need. Second, how much
of an excess over the usual level is still there a round later, because a short spike is over before its CPUs would be
of use to others. Third, the rises: how much the need of a round exceeded what the previous round led to expect. The
margin is a multiple of the rises' percentile and of the mean excess above it, so a calm node does not pay for the few
that are restless.

While few rounds are known, the margin is between that value and a guess from the size of the need and of the machine.
The policy checks all the time whether the need stays within the percentile as often as claimed, and misses widen the
margin.

Facts: docs/facts/targets.md#the-margin-of-the-policy-adaptive.
"""

import math
from dataclasses import dataclass, field

from services.advisor.core.model.coverage import Coverage
from services.advisor.core.prediction.coverage import MAX_GAP_S, SPANS_S, Horizon, HorizonRules, claim_of
from services.advisor.core.prediction.histogram import CPU_CORES, Histogram
from services.advisor.core.prediction.peak import Peak, Scale
from services.advisor.core.prediction.rise_lines import LineRules, RiseLines
from shared.core.copies import copier

KNOWN_ROUNDS = 20.0
"""The learned margin counts half once so many rounds could have risen above the percentile."""
GUESSED_NEED_RATIO = 0.05
GUESSED_CPU_RATIO = 1 / 64
"""The guess for percentile and mean excess: these parts of the need and of the machine."""
TAIL_ROUNDS = 10.0
"""The mean excess counts half once so many rounds have risen above the percentile: one jump of a calm node is no rule.
"""
LEAST_CPU_RATIO = 1 / 8
"""The least margin is at most this part of the machine."""
USUAL_WEIGHT = 1e-3
"""How much a usual need above the usual would count that stays whole: decides while no excess has been seen."""
JUDGED_ROUNDS = 200.0
"""Coverage is the mean of at least about so many rounds, the newest ones weighing most."""
JUDGED_MISSES = 10.0
"""Least number of claimed misses before misses widen the margin: a single miss must not."""
CAUTION = 1.5
"""If CPUs are shared, the need may exceed the bound in exp(-CAUTION x factor) of the rounds."""
TOLERATED_MISSES = 2.0
"""Misses come in clumps: up to so many times as many as claimed nothing is corrected."""


@dataclass(frozen=True, slots=True)
class MarginRules:
    """What is usual, which rises count, and how much of them is kept above the need."""

    usual: Scale
    rise_percentile: float
    rise_half_life_s: float
    factor: float
    least_cores: float
    least_percent: float = 0.0
    """Of the machine; unlike `least_cores` not reduced by a factor below 1."""

    def least_margin_cores(self, cpus: int) -> float:
        """Return the least margin on a machine of so many CPUs."""
        # A factor below 1 takes a risk on purpose: the least margin must not undo it.
        least = min(self.least_cores, LEAST_CPU_RATIO * cpus) * min(1.0, self.factor)
        return max(least, self.least_percent * cpus / 100)

    @property
    def claimed_misses(self) -> float:
        """Part of the rounds in which the need may rise above the percentile."""
        return 1 - self.rise_percentile / 100

    @property
    def horizons(self) -> HorizonRules:
        """How rises within a longer time are learned."""
        return HorizonRules(self.rise_percentile, self.rise_half_life_s)

    @property
    def lines(self) -> LineRules:
        """How the bound is learned that holds where CPUs are shared."""
        return LineRules(self.rise_half_life_s, CAUTION * self.factor)

    @property
    def judged_rounds(self) -> float:
        """Over about how many rounds coverage is judged."""
        return max(JUDGED_ROUNDS, JUDGED_MISSES / self.claimed_misses)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the need of one round led to expect of the next, in cores unless the name says otherwise."""

    at_s: float
    need_cores: float
    usual_cores: float
    expected_cores: float
    rise_cores: float
    """The percentile of the rises; `claimed_ratio`: in what part of the rounds they are claimed not to exceed it."""
    claimed_ratio: float
    excess_cores: float
    """Mean excess of rises above it; smaller while there are few."""
    known_ratio: float
    """Share of the margin that is learned; the rest is guessed."""
    widened: float
    """By what factor misses have widened the margin."""
    learned_cores: float
    """The part of the margin that is learned."""
    margin_cores: float

    @property
    def bound_cores(self) -> float:
        """Return what is kept for the tenants: never less than they need now."""
        return max(self.need_cores, self.expected_cores + self.margin_cores)

    @property
    def learned_bound_cores(self) -> float:
        """Return the bound without the guessed part, for a node that is hardly known."""
        return max(self.need_cores, self.expected_cores + self.learned_cores)


@dataclass(frozen=True, slots=True)
class LearnedMargin:
    """State for the tenants of one region. Bounded by the buckets of its histograms."""

    usual: Peak = field(default_factory=Peak)
    rises: Histogram = field(default_factory=Histogram)
    learned_s: float = 0.0
    """Time that has been observed, without silences."""
    stayed: float = 0.0
    """Sum of products of an excess above the usual and what was left of it a round later; `exceeded`: of squares."""
    exceeded: float = 0.0
    missed_ratio: float = 0.0
    """Part of the newest rounds in which the need rose above the percentile that was known before."""
    coverage: Coverage = field(default_factory=Coverage)
    """How often the need of a round stayed below, and how often that was claimed."""
    horizons: tuple[Horizon, ...] = (Horizon(),) * len(SPANS_S)
    """The same for longer times, one for each of `SPANS_S`."""
    lines: RiseLines = field(default_factory=RiseLines)
    """Another bound of the need, for nodes whose CPUs are shared."""
    last: Forecast | None = None

    def observe(self, need_cores: float, now_s: float, cpus: int, rules: MarginRules) -> "LearnedMargin":
        """The state after one more reading on a machine of so many CPUs, with the forecast that follows from it."""
        # Queues may be of any length, and their squares are summed; no tenant can get more than the machine.
        need_cores = min(need_cores, float(cpus))
        after = self._with_rise(need_cores, now_s, rules)
        peak = self.usual.observe(need_cores, now_s, rules.usual)
        usual = peak.value or 0.0
        expected = max(usual, usual + after.staying_ratio(usual) * (need_cores - usual))
        # From the rises before this one: it is in the need already, and more need must not narrow the margin.
        claim = claim_of(self.rises, rules.rise_percentile)
        rise = claim.rise_cores
        excess = _mean_excess(self.rises, rise)
        # Of all rounds: that a node never rises is known as well.
        judged = rules.claimed_misses * math.fsum(self.rises.weights.values())
        known = judged / (judged + KNOWN_ROUNDS)
        widened = max(1.0, self.missed_ratio / (TOLERATED_MISSES * rules.claimed_misses))
        guessed = GUESSED_NEED_RATIO * expected + GUESSED_CPU_RATIO * cpus
        learned = rules.factor * known * widened * (rise + excess)
        margin = learned + rules.factor * (1 - known) * guessed
        margin = max(rules.least_margin_cores(cpus), margin)
        spans = rules.horizons
        horizons = tuple(
            [
                horizon.observe(need_cores, expected, now_s, span_s, spans)
                for horizon, span_s in zip(self.horizons, SPANS_S, strict=True)
            ]
        )
        lines = self.lines.observe(need_cores, now_s, cpus, rules.lines)
        last = Forecast(now_s, need_cores, usual, expected, rise, claim.ratio, excess, known, widened, learned, margin)
        return _learned(after, peak, horizons, lines, last)

    def _with_rise(self, need_cores: float, now_s: float, rules: MarginRules) -> "LearnedMargin":
        last = self.last
        # A clock that went back, or a silence: what happened in between is not known.
        if last is None or not 0 <= now_s - last.at_s <= MAX_GAP_S:
            return self
        passed_s = now_s - last.at_s
        rise = max(0.0, need_cores - last.expected_cores)
        aged = passed_s / rules.rise_half_life_s
        faded = 2.0**-aged
        excess = max(0.0, last.need_cores - last.usual_cores)
        left = max(0.0, need_cores - last.usual_cores)
        missed = 1.0 if rise > last.rise_cores else 0.0
        coverage = self.coverage
        if last.claimed_ratio:
            coverage = coverage.observe(last.claimed_ratio, not missed, aged)
        return _risen(
            self,
            self.rises.add(CPU_CORES.index(rise), 1.0, aged),
            self.learned_s + passed_s,
            self.stayed * faded + excess * left,
            self.exceeded * faded + excess * excess,
            self.missed_ratio + (missed - self.missed_ratio) / rules.judged_rounds,
            coverage,
        )

    def staying_ratio(self, usual_cores: float) -> float:
        """Part of an excess above the usual that is expected to be there a round later, at most all of it."""
        whole = USUAL_WEIGHT * usual_cores * usual_cores
        return min(1.0, (self.stayed + whole) / (self.exceeded + whole)) if self.exceeded + whole > 0 else 1.0


_learned = copier(LearnedMargin, "usual", "horizons", "lines", "last")
_risen = copier(LearnedMargin, "rises", "learned_s", "stayed", "exceeded", "missed_ratio", "coverage")


def _mean_excess(rises: Histogram, above_cores: float) -> float:
    """By how much the rises above this one exceed it on average, shrunk towards 0 while they are few."""
    ends = CPU_CORES.ends
    larger = [(ends[bucket] - above_cores, w) for bucket, w in rises.weights.items() if ends[bucket] > above_cores]
    weight = math.fsum(w for _, w in larger)
    # The mean, times weight / (weight + TAIL_ROUNDS).
    return math.fsum(excess * w for excess, w in larger) / (weight + TAIL_ROUNDS)
