"""Ask how a window over samples moves: the what-if kind `smooth_window`."""

import itertools
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.reporter.core.window import Window, WindowRules, moved
from shared.whatif.decisions import Answer, Question, decision

Aggregate = Literal["avg", "percentile"]
Amount = Annotated[float, Field(ge=-1e18, le=1e18)]
Step = Annotated[float, Field(ge=0, le=1e18)]
Moment = Annotated[float, Field(ge=-1e12, le=1e12)]
WindowSize = Annotated[int, Field(ge=1, le=100_000)]


class WindowStep(Question):
    """One sample."""

    t_s: Moment
    value: Amount


def in_order(times_s: Sequence[float]) -> None:
    """Time only goes on.

    Raises:
        ValueError: a step lies before the one in front of it.
    """
    if any(later < earlier for earlier, later in itertools.pairwise(times_s)):
        raise ValueError("steps: t_s goes back")


class WindowQuestion(Question):
    """The window's rules, and its samples over time."""

    window_samples: WindowSize
    ttl_s: Annotated[float, Field(ge=0, le=1e12)] | None = None
    aggregate: Aggregate
    percentile: Annotated[float, Field(ge=0, le=100)] | None = None
    min_step: Step = 0.0
    max_step: Step | None = None
    steps: list[WindowStep]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        in_order([step.t_s for step in self.steps])
        if self.aggregate == "percentile" and self.percentile is None:
            raise ValueError("percentile: needed with aggregate percentile")
        return self

    @property
    def rules(self) -> WindowRules:
        """The rules of the window."""
        percentile = self.percentile if self.aggregate == "percentile" else None
        return WindowRules(self.window_samples, self.ttl_s, percentile, self.min_step, self.max_step)


class WindowedStep(Answer):
    """The window's value after the sample; null until it was full for the first time."""

    value: float | None


class WindowAnswer(Answer):
    """One value for each sample."""

    steps: list[WindowedStep]


@decision("smooth_window", area="cpu_headroom", asks=WindowQuestion, answers=WindowAnswer)
def smooth_window(question: WindowQuestion) -> WindowAnswer:
    """A window over samples with limited steps."""
    window, values = Window(), []
    for step in question.steps:
        window = moved(window, question.rules, step.t_s, step.value)
        values.append(WindowedStep(value=window.value))
    return WindowAnswer(steps=values)
