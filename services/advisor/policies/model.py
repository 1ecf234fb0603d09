"""Tenants need the bound that a learned predictor gives for the next moments (docs/model-policy.md).

The predictor sees the need of all shared containers together. Its bound is meant to hold in a stated share of cases.
The policy checks that share all the time, and sets a predictor aside that misses more often: canonical decides until
the predictor has been right for a while. Canonical also decides while the recorded past is too short, and for a view
without figures. The demand is never below what tenants use and queue for now. Memory is canonical's.

Custom weights are read when the settings are checked; the shipped weights are read once, when first needed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from services.advisor.core.demand.need import TenantsNeed, tenants_need
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.core.prediction.predictor import StepModel, Weights
from services.advisor.core.prediction.track import Track, TrackRules, tracks_of
from services.advisor.policies import canonical
from shared.contracts.envelope import Reason
from shared.core.pydantic_words import first_fault

SHIPPED = Path(__file__).with_suffix(".json")
"""Written by `sublet train`; docs/model-policy.md has the command."""
MAX_BYTES = 1 << 20
CANONICAL = canonical.CanonicalSettings()


def read_weights(file: Path) -> Weights:
    """Read a weights file.

    Raises:
        ValueError: it cannot be read, or does not hold weights.
    """
    try:
        with file.open("rb") as source:
            return Weights.model_validate_json(source.read(MAX_BYTES))
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}; make one with `sublet train FILE -o {file}`") from None
    except ValidationError as error:
        fault = first_fault(error, whole="file")
        raise ValueError(f"{file}: {fault}; make one with `sublet train FILE -o {file}`") from None


@cache
def shipped_models() -> tuple[StepModel, ...]:
    """Return the predictors that come with the product.

    Raises:
        ValueError: as `read_weights`.
    """
    return read_weights(SHIPPED).models


class ModelSettings(PolicySettings):
    """Which weights are used, and when the predictor is set aside."""

    weights: Path | None = None
    """A file written by `sublet train`; None: the weights that come with the product."""
    max_miss_ratio: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.15
    """Share of the last predictions that may be exceeded; above it canonical decides. Bounds are calibrated to be
    exceeded in 1 case of 20, but misses come in clusters."""
    window_steps: Annotated[int, Field(ge=10, le=1000)] = 120
    """Number of past predictions that are checked."""
    return_after_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 600.0
    """Seconds without too many misses after which the predictor is used again."""
    _models: tuple[StepModel, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _read(self) -> Self:
        if self.weights is not None:
            self._models = read_weights(self.weights).models
        return self

    @classmethod
    def with_models(cls, models: Sequence[StepModel]) -> Self:
        """Return default settings with predictors that are not in a file yet."""
        settings = cls()
        settings._models = tuple(models)
        return settings

    @property
    def models(self) -> tuple[StepModel, ...]:
        """Return the predictors, ascending by step.

        Raises:
            ValueError: the shipped weights cannot be read.
        """
        return self._models or shipped_models()

    @property
    def rules(self) -> TrackRules:
        """Return the rules that decide when a predictor is wrong."""
        return TrackRules(self.max_miss_ratio, self.window_steps, self.return_after_s)


State = tuple[Track, ...]
"""A track per predictor."""


def judge(state: State, view: View, now_s: float, settings: ModelSettings) -> tuple[State, Demand]:
    """Return the bound of the finest predictor with a complete past, unless it is wrong; otherwise canonical's
    demand."""
    _, by_rule = canonical.judge(None, view, now_s, CANONICAL)
    tracks, need = tracks_of(settings.models, state), tenants_need(view)
    if not view.fresh or need.measured_cores is None:
        fresh = view.fresh
        return tracks, _canonical(by_rule, "no figures", lambda: {"fresh": fresh})
    least_cores = need.measured_cores + need.asked_cores
    # Before any of the answers below: what is used now is the least in each of them.
    by_rule = replace(by_rule, cores=max(by_rule.cores, least_cores))
    tracks = tuple(track.observe(need.measured_cores, now_s, settings.rules) for track in tracks)
    ready = next((track for track in tracks if track.is_whole), None)
    if ready is None:
        return tracks, _canonical(by_rule, "the past is too short", lambda: _lengths(tracks))
    bound = ready.bound_cores()
    if ready.is_wrong(now_s, settings.rules):
        why = "too many needs exceeded their bound"
        return tracks, _canonical(by_rule, why, lambda: _numbers(ready, bound, need, settings))
    rule = f"model: need of the next {ready.model.horizon_s:g} s, at least that of now"
    reasons = Reasons(lambda: [Reason(rule=rule, numbers=_numbers(ready, bound, need, settings))])
    return tracks, Demand(max(bound + need.asked_cores, least_cores), by_rule.memory_bytes, reasons)


def _lengths(tracks: Sequence[Track]) -> dict[str, float]:
    return {f"steps of {track.model.step_s:g} s": len(track.past) for track in tracks}


def _numbers(track: Track, bound_cores: float, need: TenantsNeed, settings: ModelSettings) -> dict[str, float]:
    return {
        "bound_cores": round(bound_cores, 6),
        "now_cores": round(need.measured_cores or 0.0, 6),
        "asked_cores": round(need.asked_cores, 6),
        "coverage": track.model.coverage,
        "predictions": len(track.outcomes),
        "misses": track.misses,
        "max_misses": settings.rules.max_misses,
    }


def _canonical(by_rule: Demand, why: str, numbers: Callable[[], Mapping[str, float]]) -> Demand:
    """Return canonical's demand, and why canonical decides."""
    rule = f"model: {why}; canonical decides"
    reasons = Reasons(lambda: (Reason(rule=rule, numbers=dict(numbers())), *by_rule.why))
    return replace(by_rule, why=reasons)


POLICY = Policy(name="model", settings=ModelSettings, start=tuple, judge=judge)
