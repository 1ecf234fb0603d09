"""Tenants need their usual amount, plus a margin that the node learns (docs/adaptive-policy.md).

The margin follows from the rises that the node has seen (`core/prediction/margin`): a calm node keeps a small margin, a
restless node a larger one. It replaces the common reserve and pace, which are the same on every node. The margin
absorbs a spike, which is forgotten at once, and the usual level keeps the offer from following every trough.

Canonical decides, with the common reserve and pace, while tenants have been observed for less than `cold_start_s`, for
a view without figures, and while the need rises above the forecast far more often than claimed. The policy keeps what
it learned across restarts of the advisor. Memory is canonical's.

Facts: docs/facts/targets.md#the-margin-of-the-policy-adaptive.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Annotated

from pydantic import Field

from services.advisor.core.demand.need import pool_need_cores, pool_used_cores, tenants_need, used_cores
from services.advisor.core.model.coverage import Coverage
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import View
from services.advisor.core.policy import Demand, Policy, PolicyPast, PolicySettings
from services.advisor.core.prediction.coverage import SPANS_S, Claim
from services.advisor.core.prediction.histogram import CPU_CORES
from services.advisor.core.prediction.margin import (
    NOTHING_LEARNED,
    Forecast,
    LearnedMargin,
    LearningRules,
    MarginRules,
)
from services.advisor.core.prediction.peak import Scale
from services.advisor.core.prediction.stored_margin import margins_of, margins_text
from services.advisor.policies import canonical
from shared.contracts.envelope import Reason

CANONICAL = canonical.CanonicalSettings()
FULL_RATIO = 0.97
"""Tenants that use this share of their pool may want more than they can get."""
WANTED_FACTOR = 1.25
"""Factor from use to need for such tenants, so that the pool grows until it no longer limits them."""
USUAL_FACTOR = 4.0
YOUNG_FACTORS = (3.0, 4.0)
"""Factors from which and up to which young tenants are covered more and more where CPUs are shared."""
YOUNG_RISES, YOUNG_LEFT_RATIO = 2.0, 0.5
"""That cover: so many times what the need may rise by, for services that start together rise together; at most this
part of what the tenants leave."""
RESTLESS_RISES = 2.5
"""So many rises above the common reserve, three that have faded a little, show that it is not enough for the node."""
TOO_YOUNG = "tenants observed for less than {:g} s"
LOOKS_AHEAD = ("a round", *(f"{span_s:g} s" for span_s in SPANS_S))
HalfLife = Annotated[float, Field(ge=60, le=30 * 86_400, allow_inf_nan=False)]


class AdaptiveSettings(PolicySettings):
    """What is usual, how large the margin is, and when canonical decides."""

    usual_percentile: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 75.0
    """Percent of the time for which the tenants' need was at or below the usual level; higher means fewer evictions."""
    usual_half_life_s: HalfLife = 12 * 3600.0
    """Seconds after which a need has half its weight in the usual level."""
    rise_percentile: Annotated[float, Field(ge=50, le=99.9, allow_inf_nan=False)] = 95.0
    """Percent of rounds in which the need rises by no more than the forecast claims."""
    rise_half_life_s: HalfLife = 10_000.0
    """Seconds after which a rise has half its weight."""
    margin_factor: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = USUAL_FACTOR
    """Factor on that rise and on the excess of larger ones; less offers more, at more risk. While canonical decides
    for young tenants, a factor above the default also applies to its demand and reserve."""
    min_margin_cores: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 1.0
    """Least margin in cores, at most an eighth of the CPUs; a factor below 1 reduces it."""
    min_margin_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0
    """Least margin in percent of the CPUs, whatever was learned and whatever the factor."""
    max_offer_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 100.0
    """Where CPUs are shared, the most that the offer and what tenants use on average make up together, in percent of
    the CPUs; less leaves CPUs idle in troughs, from which a rise finds room."""
    cold_start_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 600.0
    """Seconds for which tenants must be observed before the margin is used; canonical decides until then."""
    max_miss_ratio: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.25
    """Share of the newest rounds in which the need may rise above the forecast; above it canonical decides."""

    @cached_property
    def rules(self) -> MarginRules:
        """Return the rules by which the margin is learned, and how much of it is kept."""
        usual = Scale(CPU_CORES, self.usual_percentile, self.usual_half_life_s)
        return MarginRules(
            learning=LearningRules(usual, self.rise_percentile, self.rise_half_life_s),
            factor=self.margin_factor,
            least_cores=self.min_margin_cores,
            least_percent=self.min_margin_percent,
        )


def judge(state: LearnedMargin, view: View, now_s: float, settings: AdaptiveSettings) -> tuple[LearnedMargin, Demand]:
    """Bound the need by the forecast, and by requests where nothing is measured."""
    need = tenants_need(view, used_cores)
    measured = need.measured_cores
    # No tenants need anything: this is known, and no reason to distrust the forecast.
    if idle := measured is None and not view.of("shared_cores"):
        measured = pool_need_cores(view)
    if not view.fresh or measured is None:
        fresh = view.fresh
        return state, _canonical(_by_rule(view, now_s), "no figures", lambda: {"fresh": fresh})
    wanted = _wanted_cores(measured, view)
    # An empty node says nothing about future tenants: canonical decides in their first minutes, however long it was
    # empty.
    state = state.observe(wanted, now_s, view.bounds.cpus, settings.rules.learning, is_idle=idle)
    cold = state.learned_s < settings.cold_start_s
    distrusted = state.missed_ratio > settings.max_miss_ratio
    if not view.bounds.disjoint and not idle and not distrusted:
        now_cores = wanted + need.asked_cores
        if cold:
            return state, _young_beside(state, _by_rule(view, now_s), now_cores, view, settings)
        return state, _beside(state, now_cores, view, settings)
    asked = need.asked_cores
    forecast = state.forecast(view.bounds.cpus, settings.rules)
    # What is known counts whichever policy decides, because canonical may ask for less. A guess does not count:
    # canonical has its own reserve.
    bound = _young_bound_cores(forecast, state.learned_s / settings.cold_start_s) if cold else forecast.bound_cores
    bound = max(wanted, min(bound, view.bounds.cpus)) + asked
    if not (cold or distrusted):
        what = "no shared tenant: what was usual" if idle else "what is expected"
        rule = f"adaptive: {what} + learned margin, at least what is used now"
        reasons = Reasons(
            lambda: [Reason(rule=rule, numbers=_numbers(state, forecast, asked)), _forecast_reason(state)]
        )
        return state, Demand(bound, canonical.needed_bytes(view, CANONICAL), reasons)
    by_rule = _by_rule(view, now_s)
    if cold and not idle:
        by_rule = _with_caution(by_rule, view.region_reserve_cores, settings.margin_factor)
    # Not on an empty node: canonical's reserve is enough there, and the first tenant to come must not lower the demand.
    if not idle:
        by_rule = replace(by_rule, cores=max(by_rule.cores, bound - view.region_reserve_cores))
    instead = TOO_YOUNG.format(settings.cold_start_s) if cold else "too many needs rose above the forecast"
    by_rule = replace(by_rule, may_share=cold and not idle and _is_restless(state, view, settings))
    return state, _canonical(by_rule, instead, lambda: _numbers(state, forecast, asked))


def _by_rule(view: View, now_s: float) -> Demand:
    return canonical.judge(None, view, now_s, CANONICAL)[1]


def _beside(state: LearnedMargin, now_cores: float, view: View, settings: AdaptiveSettings) -> Demand:
    """The demand where tenants may run on every CPU: the lowest of the lines' bounds, and the least margin.

    Nothing is kept at what is usual: it is the offer that has to be steady there, and not the CPUs.
    """
    cpus, lines, rules = view.bounds.cpus, state.lines, settings.rules
    asked = now_cores - lines.need_cores
    bound = max(lines.bound_cores(cpus, rules.caution), lines.need_cores + rules.least_margin_cores(cpus))
    cores = max(now_cores, min(bound, cpus) + asked)
    why = Reasons(lambda: _line_reasons(state, cpus, settings, asked))
    most_offered_ratio = settings.max_offer_percent / 100
    memory_bytes = canonical.needed_bytes(view, CANONICAL)
    return Demand(cores, memory_bytes, why, now_cores=now_cores, most_offered_ratio=most_offered_ratio)


def _young_beside(
    state: LearnedMargin, by_rule: Demand, now_cores: float, view: View, settings: AdaptiveSettings
) -> Demand:
    """The same while tenants are young: what canonical keeps above the need counts as often as usual caution is taken.

    Where CPUs are shared by choice it counts once at most, and beside it what services that rise together may want.
    Who takes more risk than usual waits for no canonical: then what is known already counts beside that.
    """
    now, reserve, shares = now_cores, view.region_reserve_cores, view.bounds.shares_cpus
    caution = settings.margin_factor / USUAL_FACTOR
    canonical_cores = max(by_rule.cores, now - reserve) + reserve - now
    by_caution = now + (min(1.0, caution) if shares else caution) * canonical_cores
    if shares:
        by_caution = max(by_caution, min(now + _cover_cores(state, now, view, settings), view.bounds.cpus))
    elif caution >= 1:
        cautious = replace(by_rule, cores=max(0.0, max(by_caution, now) - reserve))
        numbers_of = partial(_line_numbers, state, view.bounds.cpus, settings)
        return _canonical(cautious, TOO_YOUNG.format(settings.cold_start_s), numbers_of)
    learned = _beside(state, now, view, settings)
    cores = max(by_caution, learned.cores)
    rule = f"adaptive: {TOO_YOUNG.format(settings.cold_start_s)}: at least what is kept for young ones"
    numbers = {"observed_s": round(state.learned_s, 3), "young_cores": round(by_caution, 6)}
    why = Reasons(lambda: (Reason(rule=rule, numbers=numbers), *learned.why))
    return replace(learned, cores=cores, why=why)


def _cover_cores(state: LearnedMargin, now_cores: float, view: View, settings: AdaptiveSettings) -> float:
    """What is kept above the need of young tenants, by the caution that is taken."""
    first, last = YOUNG_FACTORS
    part = min(1.0, max(0.0, (settings.margin_factor - first) / (last - first)))
    left = max(0.0, view.bounds.cpus - now_cores)
    rise = state.lines.rise_cores(view.bounds.cpus, settings.rules.caution)
    return part * min(YOUNG_LEFT_RATIO * left, YOUNG_RISES * rise)


def _is_restless(state: LearnedMargin, view: View, settings: AdaptiveSettings) -> bool:
    """Whether young tenants need not wait for the end of the cold start before CPUs may be shared.

    The usual factor begins as Katalyst does, for as long as its reserve is seen to be enough.
    """
    if settings.margin_factor != USUAL_FACTOR:
        return True
    return state.rises.weight_above(view.region_reserve_cores, CPU_CORES) >= RESTLESS_RISES


def _line_reasons(state: LearnedMargin, cpus: int, settings: AdaptiveSettings, asked_cores: float) -> list[Reason]:
    numbers = _line_numbers(state, cpus, settings) | {"asked_cores": round(asked_cores, 6)}
    numbers["exceeded_ratio"] = round(math.exp(-settings.rules.caution), 9)
    rule = "adaptive: the lowest bound of need, mean and what lies between"
    return [Reason(rule=rule, numbers=numbers), _forecast_reason(state)]


def _line_numbers(state: LearnedMargin, cpus: int, settings: AdaptiveSettings) -> dict[str, float]:
    lines = state.lines
    return {
        "now_cores": round(lines.need_cores, 6),
        "mean_cores": round(lines.mean_cores, 6),
        "bound_cores": round(lines.bound_cores(cpus, settings.rules.caution), 6),
        "missed_ratio": round(state.missed_ratio, 4),
        "observed_s": round(state.learned_s, 3),
    }


def _young_bound_cores(forecast: Forecast, observed_ratio: float) -> float:
    """Return the bound for tenants that were observed for this share of the cold start.

    What tenants use in their first seconds is not yet usual for them.
    """
    return forecast.need_cores + observed_ratio * (forecast.learned_bound_cores - forecast.need_cores)


def _with_caution(by_rule: Demand, reserve_cores: float, factor: float) -> Demand:
    """Return canonical's demand; a factor above the default increases its reserve."""
    more = max(0.0, factor / USUAL_FACTOR - 1)
    return replace(by_rule, cores=by_rule.cores + more * (by_rule.cores + reserve_cores))


def _wanted_cores(measured_cores: float, view: View) -> float:
    """Return what tenants want: more than they use if they use all that they have, and at least the measured need.

    The measured need contains waiting tasks. The factor stands for tasks that nothing counts, and never for both.
    """
    if view.size_cpus is None or measured_cores < FULL_RATIO * view.size_cpus:
        return measured_cores
    used = pool_used_cores(view)
    return max(measured_cores, used * WANTED_FACTOR) if used >= FULL_RATIO * view.size_cpus else measured_cores


def _numbers(state: LearnedMargin, forecast: Forecast, asked_cores: float) -> dict[str, float]:
    last = state.last
    return {
        "now_cores": round(last.need_cores, 6),
        "usual_cores": round(last.usual_cores, 6),
        "expected_cores": round(last.expected_cores, 6),
        "rise_cores": round(last.rise_cores, 6),
        "excess_cores": round(forecast.excess_cores, 6),
        "known_ratio": round(forecast.known_ratio, 4),
        "widened": round(last.widened, 4),
        "margin_cores": round(forecast.margin_cores, 6),
        "asked_cores": round(asked_cores, 6),
        "missed_ratio": round(state.missed_ratio, 4),
        "observed_s": round(state.learned_s, 3),
    }


def _forecast_reason(state: LearnedMargin) -> Reason:
    """Describe the claimed rise for each time span, how often it is claimed, and how often it held."""
    numbers = _claimed("round", Claim(state.last.rise_cores, state.last.claimed_ratio), state.coverage)
    for span_s, horizon in zip(SPANS_S, state.horizons, strict=True):
        if horizon.look:
            numbers |= _claimed(f"{span_s:g} s", horizon.look.claim, horizon.coverage)
    return Reason(rule="adaptive: the need rises by no more within", numbers=numbers)


def _claimed(time: str, claim: Claim, coverage: Coverage) -> dict[str, float | None]:
    ratios = {"claimed": coverage.claimed_ratio, "covered": coverage.covered_ratio}
    rounded = {f"{time} {name}": None if ratio is None else round(ratio, 4) for name, ratio in ratios.items()}
    return {f"{time} cores": round(claim.rise_cores, 6), **rounded}


def _canonical(by_rule: Demand, why: str, numbers: Callable[[], Mapping[str, float]]) -> Demand:
    """Canonical's demand with the common reserve and pace, and why it decides."""
    rule = f"adaptive: {why}; canonical decides"
    reasons = Reasons(lambda: (Reason(rule=rule, numbers=dict(numbers())), *by_rule.why))
    return replace(by_rule, why=reasons, common=True)


def coverage_of(state: LearnedMargin) -> dict[str, Coverage]:
    """Return how often the need kept within the claimed rise, by time span."""
    return dict(zip(LOOKS_AHEAD, (state.coverage, *[one.coverage for one in state.horizons]), strict=True))


POLICY = Policy(
    name="adaptive",
    settings=AdaptiveSettings,
    start=lambda: NOTHING_LEARNED,
    judge=judge,
    reserve="own",
    pace="own",
    shape="shared",
    past=PolicyPast(margins_text, margins_of),
    coverage=coverage_of,
)
