"""Stores the learned margins as text for the next run of the advisor; the reader never raises.

A text that is older than a day, from the future, or damaged counts as no past, and the node is observed again from the
start.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.advisor.core.model.coverage import Coverage
from services.advisor.core.prediction.coverage import SPANS_S, Horizon
from services.advisor.core.prediction.histogram import CPU_CORES, Histogram
from services.advisor.core.prediction.margin import LearnedMargin
from services.advisor.core.prediction.peak import Peak
from services.advisor.core.prediction.rise_lines import LINES, RiseLines, SeenRises
from shared.core.text.json_text import read_json
from shared.errors import Refused

MAX_MARGINS_BYTES = 4 << 20
MOST_REGIONS = 256
"""Most regions in the text; others are observed again. A node has a few."""
MOST_AWAY_S = 86_400.0
"""After a longer time the node may have other tenants."""
MOST_WEIGHT = 30 * 86_400 / math.log(2)
"""Of one histogram: what a reading each second adds up to with the longest half-life. More would outweigh all news."""
MOST_NAME_CHARACTERS = 512
_SHOWN_CHARACTERS = 200
_SAME = 1e-6
"""Sums of the same weights differ by no more."""

_Amount = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
_Weight = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
_LineWeight = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
_Bucket = Annotated[int, Field(ge=0, le=len(CPU_CORES.ends) - 1)]
_Weights = Annotated[list[tuple[_Bucket, _Weight]], Field(max_length=len(CPU_CORES.ends))]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Coverage(_Stored):
    cases: _Amount = 0.0
    claimed: _Amount = 0.0
    covered: _Amount = 0.0


class _Horizon(_Stored):
    rises: _Weights
    coverage: _Coverage


_Tail = Annotated[list[_LineWeight], Field(max_length=len(CPU_CORES.ends))]


class _Lines(_Stored):
    tails: Annotated[list[_Tail], Field(min_length=len(LINES), max_length=len(LINES))]
    """The rises above each line, by bucket."""
    mean_cores: Annotated[float, Field(ge=0, le=CPU_CORES.ends[-1], allow_inf_nan=False)]
    mean_s: _Amount


class _Margin(_Stored):
    usual: _Weights
    usual_cores: Annotated[float, Field(ge=0, le=CPU_CORES.ends[-1], allow_inf_nan=False)] | None
    rises: _Weights
    learned_s: _Amount
    stayed: _Amount
    exceeded: _Amount
    missed_ratio: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    coverage: _Coverage = _Coverage()
    horizons: Annotated[dict[Annotated[float, Field(gt=0)], _Horizon], Field(max_length=len(SPANS_S))] = {}
    """By span in seconds; one that is not looked at any more is left out."""
    lines: _Lines | None = None
    """None: of a version that did not know them; they are learned anew."""


class _Margins(_Stored):
    version: Literal[1] = 1
    policy: Literal["adaptive"] = "adaptive"
    written_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Seconds since 1970."""
    regions: Annotated[
        dict[Annotated[str, Field(max_length=MOST_NAME_CHARACTERS)], _Margin], Field(max_length=MOST_REGIONS)
    ]


def margins_text(margins: Mapping[str, LearnedMargin], wall_s: float) -> bytes:
    """Return what has been learned by region, without the unfinished window and without names that are too long.

    If the text would be too large, the horizons are left out, because sizes do not depend on them.
    """
    names = sorted(name for name in margins if len(name) <= MOST_NAME_CHARACTERS)
    regions = {name: _stored(margins[name]) for name in names[:MOST_REGIONS]}
    text = _text(regions, wall_s)
    if len(text) <= MAX_MARGINS_BYTES:
        return text
    return _text({name: stored.model_copy(update={"horizons": {}}) for name, stored in regions.items()}, wall_s)


def _text(regions: Mapping[str, _Margin], wall_s: float) -> bytes:
    return _Margins(written_s=wall_s, regions=dict(regions)).model_dump_json().encode()


def margins_of(text: bytes, wall_s: float) -> tuple[dict[str, LearnedMargin], str]:
    """Return what a text holds by region, and why it holds nothing, or ""."""
    try:
        # In two steps, for JSON has no tuples.
        read_json(text, what="what the policy learned", max_bytes=MAX_MARGINS_BYTES)
        past = _Margins.model_validate_json(text)
    except (Refused, ValidationError) as error:
        return {}, f"what the policy learned: {str(error)[:_SHOWN_CHARACTERS]}"
    away_s = wall_s - past.written_s
    if not 0 <= away_s <= MOST_AWAY_S:
        return {}, f"what the policy learned: written {away_s:.0f} s ago, at most {MOST_AWAY_S:.0f} are bridged"
    return {name: _margin(stored) for name, stored in past.regions.items()}, ""


def _stored(margin: LearnedMargin) -> _Margin:
    return _Margin(
        usual=sorted(margin.usual.histogram.weights.items()),
        usual_cores=margin.usual.value,
        rises=sorted(margin.rises.weights.items()),
        learned_s=margin.learned_s,
        stayed=margin.stayed,
        exceeded=margin.exceeded,
        missed_ratio=margin.missed_ratio,
        coverage=_stored_coverage(margin.coverage),
        horizons={
            span_s: _Horizon(rises=sorted(horizon.rises.weights.items()), coverage=_stored_coverage(horizon.coverage))
            for span_s, horizon in zip(SPANS_S, margin.horizons, strict=True)
        },
        lines=_stored_lines(margin.lines),
    )


def _stored_lines(lines: RiseLines) -> _Lines:
    # In the unit of a rise now: what the next life begins with.
    tails = [[weight / lines.seen.scale for weight in tail] for tail in lines.seen.tails]
    return _Lines(tails=tails, mean_cores=lines.mean_cores, mean_s=lines.mean_s)


def _stored_coverage(coverage: Coverage) -> _Coverage:
    return _Coverage(cases=coverage.cases, claimed=coverage.claimed, covered=coverage.covered)


def _margin(stored: _Margin) -> LearnedMargin:
    """As after a silence: the first reading is no rise of the last one."""
    return LearnedMargin(
        usual=Peak(_histogram(stored.usual), value=stored.usual_cores),
        rises=_histogram(stored.rises),
        learned_s=stored.learned_s,
        stayed=stored.stayed,
        exceeded=stored.exceeded,
        missed_ratio=stored.missed_ratio,
        coverage=_coverage(stored.coverage),
        horizons=tuple(_horizon(stored.horizons.get(span_s)) for span_s in SPANS_S),
        lines=RiseLines() if stored.lines is None else _lines(stored.lines),
    )


def _lines(stored: _Lines) -> RiseLines:
    """The lines; where their weights are not of the same rises, or outweigh all news, what they say is not believed."""
    totals = [math.fsum(tail) for tail in stored.tails]
    if max(totals) > min(MOST_WEIGHT, min(totals) * (1 + _SAME) + _SAME):
        return RiseLines()
    tails = tuple(tuple(tail) for tail in stored.tails)
    return RiseLines(SeenRises(tails, totals[0]), stored.mean_cores, stored.mean_s)


def _horizon(stored: _Horizon | None) -> Horizon:
    return Horizon() if stored is None else Horizon(_histogram(stored.rises), _coverage(stored.coverage))


def _coverage(stored: _Coverage) -> Coverage:
    return Coverage(stored.cases, stored.claimed, stored.covered)


def _histogram(weights: Sequence[tuple[int, float]]) -> Histogram:
    by_bucket = dict(weights)
    total = math.fsum(by_bucket.values())
    part = min(1.0, MOST_WEIGHT / total) if total else 1.0
    return Histogram({bucket: weight * part for bucket, weight in by_bucket.items() if weight * part > 0})
