"""`estimate_cores` estimates how many cores a tenant container needs
(docs/facts/katalyst-cpu.md#estimate-of-a-container).

A figure of 0 or less counts as missing, because an idle container may not have started its work yet.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from services.advisor.core.model.containers import Column, CpuColumns
from services.advisor.core.model.figures import Figures

FALLBACK_CORES = 4.0
"""Estimate for a container without any figure on a large machine: Katalyst's value."""


@dataclass(frozen=True, slots=True)
class EstimateRule:
    """One revision of the rule: the factor on usage, and whether the request counts while some figure is missing."""

    usage_factor: float
    request_fills_gaps: bool


DEFAULT_RULE = EstimateRule(1.25, False)
"""Katalyst's rule of today (docs/facts/katalyst-cpu.md#estimate-of-a-container)."""


def estimate_cores(
    figures: Figures, request_cores: float, rule: EstimateRule = DEFAULT_RULE, fallback_cores: float = FALLBACK_CORES
) -> float:
    """The largest of usage x factor, 1- and 5-minute load; without any the request; without that the fallback."""
    usage = None if figures.usage_cores is None else figures.usage_cores * rule.usage_factor
    if whole := largest_of(usage, figures.load1, figures.load5):
        return whole
    known = [figure for figure in (usage, figures.load1, figures.load5) if figure is not None and figure > 0]
    # A missing figure may be the one that would have been the largest.
    if not known or (rule.request_fills_gaps and len(known) < 3):
        known.append(request_cores)
    return max(known) if max(known) > 0 else fallback_cores


def largest_of(usage_cores: float | None, load1: float | None, load5: float | None) -> float:
    """The largest of three figures that are all measured; 0 where one of them is missing."""
    if usage_cores and load1 and load5 and usage_cores > 0 and load1 > 0 and load5 > 0:
        return max(usage_cores, load1, load5)
    return 0.0


def largest_of_each(usage_factor: float, cpu: CpuColumns) -> tuple[float, ...] | None:
    """Return `largest_of` of each container with the factor on its usage; None where a figure of one is missing."""
    usage, load1, load5 = map(_whole, cpu)
    if usage is None or load1 is None or load5 is None:
        return None
    return tuple(map(max, [usage_factor * used for used in usage], load1, load5))


def _whole(column: Column) -> Sequence[float] | None:
    """A column of which every figure is there and above 0; looked at as a whole, for it has hundreds."""
    if None in column:
        return None
    whole = cast("Sequence[float]", column)
    return whole if min(whole, default=1.0) > 0 else None


def requested_cores(request_cores: float, fallback_cores: float = FALLBACK_CORES) -> float:
    """Return the estimate of a container that is not judged by its figures: its request, otherwise the fallback."""
    return request_cores if request_cores > 0 else fallback_cores


def total_cores(estimates: Iterable[float]) -> float:
    """The sum, the same in every order of the terms."""
    return math.fsum(estimates)
