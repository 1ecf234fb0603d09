"""Ask what is reported of a headroom over time: the what-if kind `report_headroom`."""

import math
from typing import Annotated, Self

from pydantic import Field, model_validator

from services.reporter.core.smoothing import Fall, Headroom, SmoothedOffer, SmoothingRules, next_offer
from services.reporter.core.window import WindowRules
from services.reporter.whatif.smooth_window import Amount, Moment, Step, in_order
from shared.whatif.decisions import Answer, Question, decision

NEGLIGIBLE_CORES = 0.1
"""Less than this is reported as nothing (docs/facts/katalyst-cpu.md#reported-headroom)."""


class ReportStep(Question):
    """The headroom at one moment, null where it is not known, and what may be told of it."""

    t_s: Moment
    headroom_cores: Amount | None = None
    reserved_for_report_cores: Amount
    min_report_cores: Amount
    enable_reclaim: bool


class ReportQuestion(Question):
    """How the report follows the headroom, and the headroom over time."""

    sync_period_s: Annotated[float, Field(gt=0, le=1e9)]
    window_s: Annotated[float, Field(gt=0, le=1e9)]
    min_step_cores: Step
    max_step_cores: Step
    fall: Fall = "at_once"
    steps: list[ReportStep]

    @model_validator(mode="after")
    def _usable(self) -> Self:
        in_order([step.t_s for step in self.steps])
        if self.window_s / self.sync_period_s > 100_000:
            raise ValueError("window_s: more than 100000 periods of sync_period_s")
        return self

    @property
    def rules(self) -> SmoothingRules:
        """The rules of the report."""
        window = WindowRules.over(
            self.sync_period_s, self.window_s, min_step=self.min_step_cores, max_step=self.max_step_cores
        )
        return SmoothingRules(window, self.fall, NEGLIGIBLE_CORES)


class ReportedStep(Answer):
    """What is reported; null: nothing yet."""

    reported_millicpu: int | None


class ReportAnswer(Answer):
    """One report for each step."""

    steps: list[ReportedStep]


@decision("report_headroom", area="cpu_headroom", asks=ReportQuestion, answers=ReportAnswer)
def report_headroom(question: ReportQuestion) -> ReportAnswer:
    """What is reported over time."""
    offer, told = SmoothedOffer(), []
    for step in question.steps:
        seen = Headroom(step.headroom_cores, step.reserved_for_report_cores, step.min_report_cores, step.enable_reclaim)
        offer = next_offer(offer, question.rules, step.t_s, seen)
        told.append(ReportedStep(reported_millicpu=_millis(offer.reported)))
    return ReportAnswer(steps=told)


def _millis(cores: float | None) -> int | None:
    return None if cores is None else math.floor(round(cores * 1000, 6))
