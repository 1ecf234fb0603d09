"""A window over samples whose value moves in limited steps (docs/facts/katalyst-cpu.md#reported-headroom)."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from shared.core.decisions import Answer, Question, decision

Aggregate = Literal["avg", "percentile"]
Amount = Annotated[float, Field(ge=-1e18, le=1e18)]
Step = Annotated[float, Field(ge=0, le=1e18)]
Moment = Annotated[float, Field(ge=-1e12, le=1e12)]
WindowSize = Annotated[int, Field(ge=1, le=100_000)]


@dataclass(frozen=True, slots=True)
class WindowRules:
    """Samples that make a value, how long each counts, and how far the value moves at once; in the caller's unit."""

    size: int
    ttl_s: float | None = None
    """None: for ever."""
    percentile: float | None = None
    """None: the average of the samples."""
    min_step: float = 0.0
    """A smaller change is not made."""
    max_step: float | None = None
    """A larger change is cut to this; None: any change is made."""


@dataclass(frozen=True, slots=True)
class Window:
    """The newest samples with their times, oldest first, and the value they gave last."""

    samples: tuple[tuple[float, float], ...] = ()
    value: float | None = None
    """None until the window was full for the first time."""

    @classmethod
    def full_of(cls, sample: float, now_s: float, rules: WindowRules) -> Self:
        """A window that has seen nothing but this sample, and as often as it needs."""
        return cls(((now_s, sample),) * rules.size, sample)


def moved(window: Window, rules: WindowRules, now_s: float, sample: float) -> Window:
    """The window with one sample more. Its value stays while fewer samples than its size still count."""
    samples = (*window.samples, (now_s, sample))[-rules.size :]
    valid = [value for at_s, value in samples if rules.ttl_s is None or now_s - at_s < rules.ttl_s]
    if len(valid) < rules.size:
        return Window(samples, window.value)
    return Window(samples, _limited(window.value, _aggregate(valid, rules.percentile), rules))


def _aggregate(values: Sequence[float], percentile: float | None) -> float:
    if percentile is None:
        return math.fsum(values) / len(values)
    rank = max(1, math.ceil(round(percentile * len(values) / 100, 9)))
    return sorted(values)[min(rank, len(values)) - 1]


def _limited(before: float | None, now: float, rules: WindowRules) -> float:
    if before is None:
        return now
    step = abs(now - before)
    if step < rules.min_step and not math.isclose(step, rules.min_step, rel_tol=1e-9):
        return before
    if rules.max_step is not None and step > rules.max_step:
        return before + math.copysign(rules.max_step, now - before)
    return now


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
