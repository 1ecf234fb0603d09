"""What `sublet train` prints: what was learned, and how each policy's demands compared with the needs that came."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from services.advisor.core.prediction.predictor import StepModel
from services.advisor.policies import model
from sublet.output import columns
from sublet.replay.contender import policy_of
from sublet.replay.traces.tenants import Packing
from sublet.training.evaluate import Subject, Tally, tally
from sublet.training.needs import needs_of
from sublet.training.sources import all_traces

LEARNED = ("STEP", "PAST", "HORIZON", "COVERAGE", "EXAMPLES", "HELD OUT", "MARGIN")
EVALUATED = ("SOURCE", "HORIZON", "POLICY", "PREDICTIONS", "COVERED", "ABOVE", "BELOW", "CANONICAL DECIDED")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All policies on one source."""

    source: str
    model: StepModel
    tallies: dict[str, Tally]


AGAINST = ("canonical", "percentile")
"""What the model is compared with unless told otherwise."""


def subjects(models: Sequence[StepModel], against: Iterable[str]) -> list[Subject]:
    """Who is compared: the model with default settings, and policies as `sublet replay --policy` names them.

    Raises:
        BadConfig: no such policy or setting.
    """
    others = [policy_of(text) for text in against]
    return [
        Subject("model", model.POLICY, model.ModelSettings.with_models(models)),
        *(Subject(one.name, one.choice.policy, one.choice.policy_settings) for one in others),
    ]


def evaluate(
    sources: Sequence[str], models: Sequence[StepModel], packing: Packing, against: Sequence[str] = AGAINST
) -> list[Evaluation]:
    """Each source through the finest model that its frames are frequent enough for, else the coarsest.

    Raises:
        Refused: a file cannot be read.
        Refused: a file cannot be used, or a policy is not known.
    """
    compared = subjects(models, against)
    return [_evaluation(source, models, packing, compared) for source in sources]


def _evaluation(source: str, models: Sequence[StepModel], packing: Packing, compared: Sequence[Subject]) -> Evaluation:
    with closing(all_traces([source], packing)) as peeked:
        name, first = next(peeked)
        interval_s = needs_of(name, first).interval_s
    judged = next((one for one in models if interval_s <= one.step_s), models[-1])
    traces = (trace for _, trace in all_traces([source], packing))
    return Evaluation(name, judged, tally(traces, compared, judged))


def learned_table(models: Iterable[StepModel]) -> str:
    """One line a model."""
    rows = [
        (
            f"{one.step_s:g} s",
            f"{one.history_steps * one.step_s:g} s",
            f"{one.horizon_s:g} s",
            f"{100 * one.coverage:g} %",
            str(one.trained_on.get("examples", "")),
            str(one.trained_on.get("held_out", "")),
            f"{one.margin:g}",
        )
        for one in models
    ]
    return columns(LEARNED, rows)


def evaluated_table(evaluations: Iterable[Evaluation]) -> str:
    """One line for each source and policy."""
    rows = []
    for one in evaluations:
        for label, sums in one.tallies.items():
            found = sums.figures()
            cells = (
                _with(found["coverage_percent"], " %"),
                _with(found["above_cores"], ""),
                _with(found["below_cores"], ""),
                _with(found["canonical_percent"], " %") if label == "model" else "",
            )
            rows.append((one.source, f"{one.model.horizon_s:g} s", label, str(found["predictions"]), *cells))
    return columns(EVALUATED, rows)


def _with(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:g}{unit}"


def document(models: Iterable[StepModel], evaluations: Iterable[Evaluation]) -> dict[str, Any]:
    """The same for programs; keys hold their units."""
    return {
        "models": [one.model_dump(mode="json") for one in models],
        "evaluations": [
            {
                "source": one.source,
                "horizon_s": one.model.horizon_s,
                "policies": {label: sums.figures() for label, sums in one.tallies.items()},
            }
            for one in evaluations
        ],
    }
