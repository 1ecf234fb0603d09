"""Compute the figures of one target from what was read of it and from its last result. Pure."""

from collections.abc import Mapping, Sequence

from services.metrics.core.figures.figure import Figure, Gauge, OfferedFigures
from services.metrics.core.figures.results import SourceReading, SourceResult, TargetReading, TargetResult
from services.metrics.core.figures.values import MOST, NUMBER, WANTED, Points, plausible

Offers = Mapping[str, OfferedFigures]
"""What each source offers for the kind of the target."""

SETTLED = 0.05
"""An average of zero tasks below this value stays. It would fall for a quarter of an hour, and until then the
figures of a target whose tasks have ended could not come from the `cache`."""
_NOTHING = SourceResult(SourceReading(0.0, {}), {}, {})


def figures(
    reading: TargetReading, previous: TargetResult | None, offers: Offers, now_s: float
) -> dict[str, SourceResult]:
    """Return the figures by source.

    A source that failed has none. A source that was not read again keeps its figures, except averages, which continue
    towards the last count until they have settled.
    """
    found: dict[str, SourceResult] = {}
    for source, offer in offers.items():
        now = reading.sources.get(source)
        last = None if previous is None else previous.sources.get(source)
        # The same object means that the source was not read again; equal values may come from a new reading.
        if last is not None and now is last.reading:
            found[source] = later(offer, last, now_s) if offer.decaying and not _settled(last) else last
        elif last is not None and now is not None and _says_the_same(offer, last, now):
            found[source] = last._replace(reading=now)
        else:
            points = {} if last is None or previous is None else _points(offer, last, previous.at_s)
            read = now or SourceReading(reading.at_s, {})
            found[source] = _with(_NOTHING, offer.figures, read, read.at_s, points)
    return found


def later(offer: OfferedFigures, last: SourceResult, now_s: float) -> SourceResult:
    """Return a result some time later for a source that was not read again: averages continue, everything else
    stays."""
    return _with(last, offer.decaying, last.reading, now_s, last.points)


def _says_the_same(offer: OfferedFigures, last: SourceResult, now: SourceReading) -> bool:
    """Return whether a new reading gives the same figures: without points and averages, raw values alone decide."""
    return not (last.points or offer.decaying) and last.reading.raw == now.raw


def _points(offer: OfferedFigures, last: SourceResult, at_s: float) -> Points:
    """Return the points at the time of the last result. A settled average was left behind: it moves towards the old
    count until then, and only afterwards towards the new one."""
    return later(offer, last, at_s).points if offer.decaying else last.points


def _with(
    base: SourceResult, figures: Sequence[Figure], reading: SourceReading, now_s: float, past: Points
) -> SourceResult:
    """The base with these figures on top."""
    raw = reading.raw
    values, points, rejected = dict(base.values), dict(base.points), base.rejected
    for figure in figures:
        # Most figures: a whole number as it was read.
        if type(figure) is Gauge and type(value := raw.get(figure.name)) is int and 0 <= value < MOST:
            values[figure.name] = value
            continue
        value, further, why = figure.compute(raw, now_s, past)
        if further:
            points |= further
        # Here for all figures alike: a reader must never see a negative number or infinity.
        if isinstance(value, NUMBER) and not plausible(value):
            value, why = None, why or f"{str(value)[:20]}, want {WANTED}"
        if value is not None:
            values[figure.name] = value
        if why:
            rejected = {**rejected, figure.name: why}
    return SourceResult(reading, values, points, rejected)


def _settled(last: SourceResult) -> bool:
    return all(isinstance(value, NUMBER) and value < SETTLED for value in last.values.values())
