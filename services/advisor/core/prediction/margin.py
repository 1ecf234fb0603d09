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
from typing import NamedTuple
from weakref import ref

from services.advisor.core.model.coverage import Coverage
from services.advisor.core.prediction.coverage import (
    MAX_GAP_S,
    NO_RISES,
    NOTHING_CLAIMED,
    SPANS_S,
    Horizon,
    HorizonRules,
    claim_of,
)
from services.advisor.core.prediction.histogram import CPU_CORES, Histogram
from services.advisor.core.prediction.peak import Peak, Scale
from services.advisor.core.prediction.rise_lines import RiseLines

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
class LearningRules:
    """What is usual, and which rises count, whatever risk is taken by them."""

    usual: Scale
    rise_percentile: float
    rise_half_life_s: float

    @property
    def claimed_misses(self) -> float:
        """Part of the rounds in which the need may rise above the percentile."""
        return 1 - self.rise_percentile / 100

    @property
    def horizons(self) -> HorizonRules:
        """How rises within a longer time are learned."""
        return HorizonRules(self.rise_percentile, self.rise_half_life_s)

    @property
    def judged_rounds(self) -> float:
        """Over about how many rounds coverage is judged."""
        return max(JUDGED_ROUNDS, JUDGED_MISSES / self.claimed_misses)


@dataclass(frozen=True, slots=True)
class MarginRules:
    """How much of what is learned is kept above the need."""

    learning: LearningRules
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
    def caution(self) -> float:
        """If CPUs are shared, the need may exceed the bound in exp(-caution) of the rounds."""
        return CAUTION * self.factor


class Expectation(NamedTuple):
    """What the need of one round led to expect of the next, in cores unless the name says otherwise."""

    at_s: float = -math.inf
    """When the need was seen; never: nothing follows from it."""
    need_cores: float = 0.0
    usual_cores: float = 0.0
    expected_cores: float = 0.0
    rise_cores: float = 0.0
    """The percentile of the rises; `claimed_ratio`: in what part of the rounds they are claimed not to exceed it."""
    claimed_ratio: float = 0.0
    widened: float = 1.0
    """By what factor misses have widened the margin."""
    rises: Histogram = NO_RISES
    """Those before the last one, which is in the need already: more need must not narrow the margin."""


NO_PEAK, NO_LINES, NOTHING_EXPECTED = Peak(), RiseLines(), Expectation()


class Forecast(NamedTuple):
    """The margin that a risk makes of an expectation, in cores unless the name says otherwise."""

    need_cores: float
    expected_cores: float
    excess_cores: float
    """Mean excess of rises above their percentile; smaller while there are few."""
    known_ratio: float
    """Share of the margin that is learned; the rest is guessed."""
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


Asked = tuple[float, float, int, LearningRules, bool]
"""A need, its time, the CPUs of the machine, the rules, and whether the node is idle."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class LearnedMargin:
    """State for the tenants of one region, whatever risk is taken. Bounded by the buckets of its histograms."""

    usual: Peak = NO_PEAK
    rises: Histogram = NO_RISES
    learned_s: float = 0.0
    """Time that has been observed, without silences."""
    stayed: float = 0.0
    """Sum of products of an excess above the usual and what was left of it a round later; `exceeded`: of squares."""
    exceeded: float = 0.0
    missed_ratio: float = 0.0
    """Part of the newest rounds in which the need rose above the percentile that was known before."""
    coverage: Coverage = NOTHING_CLAIMED
    """How often the need of a round stayed below, and how often that was claimed."""
    horizons: tuple[Horizon, ...] = (Horizon(),) * len(SPANS_S)
    """The same for longer times, one for each of `SPANS_S`."""
    lines: RiseLines = NO_LINES
    """Another bound of the need, for nodes whose CPUs are shared."""
    last: Expectation = NOTHING_EXPECTED
    _next: "list[tuple[Asked, ref[LearnedMargin]]]" = field(default_factory=list, init=False, repr=False, compare=False)
    """The last question and its answer. Rows of a comparison that differ in their risk ask the same of the same state,
    and learn it once. A weak one: a state must not keep all that follow it."""

    def observe(
        self, need_cores: float, now_s: float, cpus: int, rules: LearningRules, *, is_idle: bool = False
    ) -> "LearnedMargin":
        """The state after one more reading on a machine of so many CPUs, with what is expected from then on. The time
        of an idle node is not time in which tenants were observed."""
        asked = (need_cores, now_s, cpus, rules, is_idle)
        for question, answer in self._next:
            if question == asked and (known := answer()) is not None:
                return known
        # Queues may be of any length, and their squares are summed; no tenant can get more than the machine.
        made = self._observed(min(need_cores, float(cpus)), now_s, rules, is_idle)
        self._next[:] = [(asked, ref(made))]
        return made

    def _observed(self, need_cores: float, now_s: float, rules: LearningRules, is_idle: bool) -> "LearnedMargin":
        risen = self._with_rise(need_cores, now_s, rules)
        peak = self.usual.observe(need_cores, now_s, rules.usual)
        usual = peak.value or 0.0
        stays = staying_ratio(risen.stayed, risen.exceeded, usual)
        expected = max(usual, usual + stays * (need_cores - usual))
        claim = claim_of(self.rises, rules.rise_percentile)
        widened = max(1.0, self.missed_ratio / (TOLERATED_MISSES * rules.claimed_misses))
        spans = rules.horizons
        horizons = tuple(
            [
                horizon.observe(need_cores, expected, now_s, span_s, spans)
                for horizon, span_s in zip(self.horizons, SPANS_S, strict=True)
            ]
        )
        return LearnedMargin(
            usual=peak,
            rises=risen.rises,
            learned_s=self.learned_s if is_idle else risen.learned_s,
            stayed=risen.stayed,
            exceeded=risen.exceeded,
            missed_ratio=risen.missed_ratio,
            coverage=risen.coverage,
            horizons=horizons,
            lines=self.lines.observe(need_cores, now_s, rules.rise_half_life_s),
            last=Expectation(now_s, need_cores, usual, expected, claim.rise_cores, claim.ratio, widened, self.rises),
        )

    def forecast(self, cpus: int, rules: MarginRules) -> Forecast:
        """Return the margin that follows by these rules on a machine of so many CPUs."""
        last = self.last
        excess = _mean_excess(last.rises, last.rise_cores)
        # Of all rounds: that a node never rises is known as well.
        judged = rules.learning.claimed_misses * last.rises.total
        known = judged / (judged + KNOWN_ROUNDS)
        guessed = GUESSED_NEED_RATIO * last.expected_cores + GUESSED_CPU_RATIO * cpus
        learned = rules.factor * known * last.widened * (last.rise_cores + excess)
        margin = learned + rules.factor * (1 - known) * guessed
        margin = max(rules.least_margin_cores(cpus), margin)
        return Forecast(last.need_cores, last.expected_cores, excess, known, learned, margin)

    def _with_rise(self, need_cores: float, now_s: float, rules: LearningRules) -> "_Risen":
        last = self.last
        # A clock that went back, or a silence: what happened in between is not known.
        if not 0 <= now_s - last.at_s <= MAX_GAP_S:
            return _Risen(self.rises, self.learned_s, self.stayed, self.exceeded, self.missed_ratio, self.coverage)
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
        return _Risen(
            self.rises.add(CPU_CORES.index(rise), 1.0, aged),
            self.learned_s + passed_s,
            self.stayed * faded + excess * left,
            self.exceeded * faded + excess * excess,
            self.missed_ratio + (missed - self.missed_ratio) / rules.judged_rounds,
            coverage,
        )


class _Risen(NamedTuple):
    """What one more rise changes of a `LearnedMargin`, under the same names."""

    rises: Histogram
    learned_s: float
    stayed: float
    exceeded: float
    missed_ratio: float
    coverage: Coverage


NOTHING_LEARNED = LearnedMargin()


def staying_ratio(stayed: float, exceeded: float, usual_cores: float) -> float:
    """Part of an excess above the usual that is expected to be there a round later, at most all of it; the sums are
    those of `LearnedMargin`."""
    whole = USUAL_WEIGHT * usual_cores * usual_cores
    return min(1.0, (stayed + whole) / (exceeded + whole)) if exceeded + whole > 0 else 1.0


def _mean_excess(rises: Histogram, above_cores: float) -> float:
    """By how much the rises above this one exceed it on average, shrunk towards 0 while they are few."""
    ends = CPU_CORES.ends
    larger = [(ends[bucket] - above_cores, w) for bucket, w in rises.weights.items() if ends[bucket] > above_cores]
    weight = math.fsum([w for _, w in larger])
    # The mean, times weight / (weight + TAIL_ROUNDS).
    return math.fsum([excess * w for excess, w in larger]) / (weight + TAIL_ROUNDS)
