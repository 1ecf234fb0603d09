"""Leave out what would compute the same figures again. Pure.

Most containers do nothing most of the time, and their figures are computed ten times cheaper by not computing them.
Nothing of this is needed for a figure to be right: `compute.figures` gives the same without it.
"""

from collections.abc import Mapping

from services.metrics.core.figures.compute import Offers, figures, later
from services.metrics.core.figures.figure import OfferedFigures
from services.metrics.core.figures.results import (
    LastPass,
    SourceReading,
    SourceResult,
    TargetReading,
    TargetResult,
)
from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import Point, Value


def result_of(before: LastPass, target: Target, reading: TargetReading, offers: Offers, now_s: float) -> TargetResult:
    """Return the figures of one target in this pass: the last ones if nothing moved, otherwise computed."""
    last = before.results.get(target)
    if last is not None and (same := cached(last, reading)) is not None:
        return same
    # A recreated cgroup counts from 0: old points would make it seem to go back.
    if last is None or last.reading.identity != reading.identity:
        return _result(reading, figures(reading, None, offers, now_s), now_s)
    # Taken over but not steady: time has passed for averages and rates, so the reading has to carry the time of now.
    now = _read_again(reading, offers, now_s) if last.reading is reading else reading
    return _result(reading, figures(now, caught_up(last, before.at_s, offers), offers, now_s), now_s)


def cached(last: TargetResult, reading: TargetReading) -> TargetResult | None:
    """Return the last result if it was made from this very reading and time alone changes nothing."""
    return last if last.steady and last.reading is reading else None


def caught_up(last: TargetResult, at_s: float | None, offers: Offers) -> TargetResult:
    """Return a result as if it had been computed in the last pass instead of taken over since.

    Sources that are read in every pass were read and stood still, so their next rate covers only the time since the
    last pass. Rarely read sources stay as they are: their rates cover the time between their own two readings.
    """
    if at_s is None or last.at_s >= at_s:
        return last
    return last._replace(
        at_s=at_s,
        sources={source: _caught_up(offers[source], result, at_s) for source, result in last.sources.items()},
    )


def is_steady(last: TargetResult, now: TargetResult) -> bool:
    """Whether the same reading once more would give the same figures: reading and figures are those of the last pass.

    All rates are 0 then, because no counter has moved, and all averages have settled.
    """
    return last.values == now.values and (last.reading is now.reading or _same_raw(last.reading, now.reading))


def _result(reading: TargetReading, sources: Mapping[str, SourceResult], at_s: float) -> TargetResult:
    values: dict[str, Value] = {}
    for result in sources.values():
        values |= result.values
    return TargetResult(reading, at_s, sources, values)


def _read_again(reading: TargetReading, offers: Offers, now_s: float) -> TargetReading:
    """Return the same reading as of now: what is read in every pass was read, and is unchanged."""
    sources = {
        source: one if source in offers and offers[source].gated else SourceReading(now_s, one.raw)
        for source, one in reading.sources.items()
    }
    return reading._replace(sources=sources)


def _caught_up(offer: OfferedFigures, last: SourceResult, at_s: float) -> SourceResult:
    if offer.gated:
        return last
    if offer.decaying:
        return later(offer, last, at_s)
    points = {
        # The later of the two: a probe may have moved this point beyond the last pass already.
        name: point._replace(at_s=max(point.at_s, at_s)) if isinstance(point, Point) else point
        for name, point in last.points.items()
    }
    return last._replace(points=points)


def _same_raw(before: TargetReading, now: TargetReading) -> bool:
    return (
        before.identity == now.identity
        and before.sources.keys() == now.sources.keys()
        and all(before.sources[name].raw == one.raw for name, one in now.sources.items())
    )
