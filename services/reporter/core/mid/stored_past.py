"""Stores the past of pods as text for the next run of the reporter; the reader never raises.

A text that is older than an hour, from the future, or damaged counts as no past, and everything is observed again from
the start.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.reporter.core.mid.peaks import MOST_MODELS, PeakHistogram, UsageHistory, UsageModel
from shared.core.text.json_text import read_json
from shared.errors import Refused

MAX_PAST_BYTES = 16 << 20
MOST_AWAY_S = 3600.0
"""After a longer time, pods may have changed although their names are the same."""

_Weight = Annotated[float, Field(gt=0, le=2.0**200, allow_inf_nan=False)]
_Bucket = Annotated[int, Field(ge=0, le=1000)]
_Minute = Annotated[int, Field(ge=0, le=1 << 30)]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Histogram(_Stored):
    reference_minute: _Minute
    weights: Annotated[list[tuple[_Bucket, _Weight]], Field(max_length=1000)]


class _Model(_Stored):
    minutes: _Minute
    cpu: _Histogram
    memory: _Histogram


class _Past(_Stored):
    version: Literal[1] = 1
    written_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Seconds since 1970."""
    models: Annotated[dict[Annotated[str, Field(max_length=253)], _Model], Field(max_length=MOST_MODELS)]


def past_text(history: UsageHistory, wall_s: float) -> bytes:
    """Return the current past, without the unfinished minute."""
    models = {
        name: _Model(minutes=model.minutes, cpu=_histogram(model.cpu), memory=_histogram(model.memory))
        for name, model in history.models.items()
    }
    return _Past(written_s=wall_s, models=models).model_dump_json().encode()


def past_of(text: bytes, now_s: float, wall_s: float) -> tuple[UsageHistory, str]:
    """Return the past from a text, and why there is none, or ""."""
    history = UsageHistory()
    try:
        # In two steps, for JSON has no tuples.
        past = _Past.model_validate_json(_checked(text))
    except (Refused, ValidationError) as error:
        return history, f"past of the pods' use: {str(error)[:200]}"
    away_s = wall_s - past.written_s
    if not 0 <= away_s <= MOST_AWAY_S:
        return history, f"past of the pods' use: written {away_s:.0f} s ago, at most {MOST_AWAY_S:.0f} are bridged"
    for name, stored in past.models.items():
        model = UsageModel(minutes=stored.minutes, seen_s=now_s)
        _fill(model.cpu, stored.cpu, stored.minutes)
        _fill(model.memory, stored.memory, stored.minutes)
        history.models[name] = model
    return history, ""


def _checked(text: bytes) -> bytes:
    """Return the same text after checking that it is bounded and complete."""
    read_json(text, what="past of the pods' use", max_bytes=MAX_PAST_BYTES)
    return text


def _histogram(histogram: PeakHistogram) -> _Histogram:
    weights = [(number, weight) for number, weight in enumerate(histogram.weights) if weight > 0]
    return _Histogram(reference_minute=histogram.reference_minute, weights=weights)


def _fill(histogram: PeakHistogram, stored: _Histogram, minutes: int) -> None:
    # A reference that lies ahead would make the next samples weigh nothing.
    histogram.reference_minute = min(stored.reference_minute, minutes)
    for number, weight in stored.weights:
        histogram.weights[min(number, len(histogram.weights) - 1)] = weight
