"""From the needs of many nodes to a weights file."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

from pydantic import Field

from services.advisor.core.prediction.predictor import FEATURES, MIN_CORES, StepModel, Weights
from shared.errors import Refused
from sublet.training.fit import DECIMALS, Example, example_of, fit, margin_of
from sublet.training.needs import Needs, runs_of, windows


@dataclass(frozen=True, slots=True)
class Grain:
    """A length of step that is tried, and what a model for it looks at and predicts."""

    step_s: float
    history_steps: int
    horizon_steps: int


GRAINS = (Grain(10.0, 60, 6), Grain(300.0, 24, 1))
"""A node's own samples come every second or two: the next minute from the last ten. Public traces have a value every
five minutes: the next one from the last two hours."""
MIN_EXAMPLES = 500
"""Fewer say too little about one case in twenty."""
HELD_OUT = 5
"""Every fifth node, or the last fifth of the time of fewer nodes, is for the margin and not for the fit."""

Coverage = Annotated[float, Field(ge=0.5, lt=1)]


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """What shall be learned."""

    coverage: float = 0.95
    seed: int = 0
    max_examples: int = 40_000
    """More are thinned out by chance: the time to train stays below a minute."""


def learn(needs: Sequence[Needs], plan: TrainingPlan) -> Weights:
    """A model for each length of step that the needs are frequent and many enough for.

    A node with little more than the first whole past is left out.

    Raises:
        Refused: `too_little`, there is none.
    """
    models = [model for grain in GRAINS if (model := _model(needs, grain, plan)) is not None]
    if not models:
        readings = sum(len(n.readings) for n in needs)
        raise Refused(
            f"training: {readings} readings of {len(needs)} nodes are too few: want {MIN_EXAMPLES} steps of "
            f"{' or '.join(f'{grain.step_s:g}' for grain in GRAINS)} s; record longer, or give more files",
            reason="too_little",
        )
    return Weights(models=tuple(models))


def _model(needs: Sequence[Needs], grain: Grain, plan: TrainingPlan) -> StepModel | None:
    found = [(node, _examples(node, grain)) for node in needs if node.interval_s <= grain.step_s]
    usable = [(node, examples) for node, examples in found if len(examples) >= grain.history_steps // 2]
    learned, held_out = _split([examples for _, examples in usable])
    if len(learned) + len(held_out) < MIN_EXAMPLES:
        return None
    learned = _thinned(learned, plan)
    weights = fit(learned, plan.coverage, plan.seed)
    by_name = {name: weight for name, weight in zip(FEATURES, weights, strict=True) if weight}
    return StepModel(
        step_s=grain.step_s,
        history_steps=grain.history_steps,
        horizon_steps=grain.horizon_steps,
        coverage=plan.coverage,
        weights=by_name,
        margin=margin_of([_ratio(example, weights) for example in held_out], plan.coverage),
        trained_on={
            "sources": ", ".join(dict.fromkeys(node.source for node, _ in usable)),
            "nodes": len(usable),
            "examples": len(learned),
            "held_out": len(held_out),
            "seed": plan.seed,
        },
    )


def _examples(node: Needs, grain: Grain) -> list[Example]:
    runs = runs_of(node.readings, grain.step_s)
    pasts = (windows(run, grain.history_steps, grain.horizon_steps) for run in runs)
    return [example_of(past, need) for past, need in chain.from_iterable(pasts)]


def _split(by_node: Sequence[list[Example]]) -> tuple[list[Example], list[Example]]:
    """Examples to learn from, and those that are held out."""
    learned: list[Example] = []
    held_out: list[Example] = []
    for number, examples in enumerate(by_node):
        if len(by_node) >= HELD_OUT:
            (held_out if number % HELD_OUT == HELD_OUT - 1 else learned).extend(examples)
        else:
            cut = len(examples) - len(examples) // HELD_OUT
            learned += examples[:cut]
            held_out += examples[cut:]
    return learned, held_out


def _thinned(examples: list[Example], plan: TrainingPlan) -> list[Example]:
    if len(examples) <= plan.max_examples:
        return examples
    return random.Random(plan.seed).sample(examples, plan.max_examples)  # noqa: S311 - reproducible, not secret


def _ratio(example: Example, weights: Sequence[float]) -> float:
    """Need / weighted sum, both at least the least bound, as `StepModel.bound_cores` has it."""
    least = MIN_CORES / example.scale_cores
    weighted = sum(weight * feature for weight, feature in zip(weights, example.features, strict=True))
    return round(max(example.need, least) / max(weighted, least), DECIMALS + 2)
