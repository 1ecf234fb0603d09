"""The figures of one target from its reading and what is remembered of it. Pure.

What was not read again, because nothing moved there, keeps its figures.
"""

from typing import Any

from services.metrics.core.figures.figure import Offer, Offered
from services.metrics.core.figures.results import Done, Memory, Part, Past, Reading
from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import WANTED, Outcome, Point, Points, Value, plausible

SETTLED = 0.05
"""An average of no tasks at all that is below a twentieth need not be told anew while it falls."""


def figures_of(memory: Memory, target: Target, reading: Reading, offered: Offered, now_s: float) -> Past:
    """The figures of one target; its part of the message is built later, but for a target that rests."""
    known = memory.past.get(target)
    if known is not None and known.rests and known.reading is reading:
        return known
    if known is not None and known.reading.identity != reading.identity:
        known = None
    looked_again = known is not None and known.reading is reading
    done, values = dict[str, Done](), dict[str, Value]()
    for source, offer in offered.get(target.kind, {}).items():
        part, last = reading.parts.get(source), None if known is None else known.done.get(source)
        if looked_again and part is not None and not offer.gated:
            part = Part(now_s, part.raw)
        if last is None:
            one = _computed(offer, part or Part(reading.at_s, {}), {})
        elif part is last.part:
            one = _carried(offer, last, now_s) if offer.drifts and not _settled(last) else last
        else:
            rested = known is not None and known.rests and not offer.gated
            points = last.points if memory.at_s is None else _up_to(memory.at_s, offer, last, rested=rested)
            one = _computed(offer, part or Part(reading.at_s, {}), points)
        done[source] = one
        values.update(one.values)
    return Past(reading, done, values, None)


def _computed(offer: Offer, part: Part, past: Points) -> Done:
    values: dict[str, Value] = {}
    points: dict[str, Any] = {}
    odd: dict[str, str] = {}
    for figure in offer.figures:
        outcome = figure.compute(part.raw, part.at_s, past)
        points.update(outcome.points)
        _take(figure.name, outcome, values, odd)
    return Done(part, values, points, odd)


def _carried(offer: Offer, last: Done, now_s: float) -> Done:
    """The figures of a part that was not read again: as they were, but for those that change with time alone."""
    values, points, odd = dict(last.values), dict(last.points), dict(last.odd)
    for figure in offer.figures:
        if figure.drifts:
            outcome = figure.compute(last.part.raw, now_s, last.points)
            points.update(outcome.points)
            _take(figure.name, outcome, values, odd)
    return Done(last.part, values, points, odd)


def _take(name: str, outcome: Outcome, values: dict[str, Value], odd: dict[str, str]) -> None:
    if outcome.odd:
        odd[name] = outcome.odd
    value = outcome.value
    if value is None:
        return
    if isinstance(value, int | float) and not plausible(value):
        odd[name] = f"{str(value)[:20]}, want {WANTED}"
    else:
        values[name] = value


def _settled(last: Done) -> bool:
    return all(isinstance(value, int | float) and value < SETTLED for value in last.values.values())


def _up_to(at_s: float, offer: Offer, last: Done, *, rested: bool) -> Points:
    """What is remembered of a source at the time of the last pass, which may not have read or computed it.

    The counters of a target that rested had been looked at and stood still; an average went on towards its count.
    """
    if offer.drifts:
        return _carried(offer, last, at_s).points
    if not rested:
        return last.points
    return {
        name: point._replace(at_s=max(point.at_s, at_s)) if isinstance(point, Point) else point
        for name, point in last.points.items()
    }
