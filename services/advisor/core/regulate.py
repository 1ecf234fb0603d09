"""From a requirement to a size, over time: round, limit the steps, clamp (docs/facts/katalyst-cpu.md#regulator)."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.advisor.core.estimate import Cores
from shared.core.decisions import Answer, Question, decision

Even = Literal["off", "before_limits", "after_limits"]
Cpus = Annotated[int, Field(ge=0, le=1_000_000)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]

MAX_RAMP_DOWN_STEP_CPUS = 2
MIN_RAMP_DOWN_PERIOD_S = 30.0
MAX_RAMP_DOWN_WAIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a size may lie and how fast it may move; all amounts in one unit of the caller's choice."""

    lower: int
    upper: int
    even: Even = "off"
    max_up_step: int | None = None
    """None: grow at once, however far. Tenants do not wait."""
    max_down_step: int = MAX_RAMP_DOWN_STEP_CPUS
    down_period_s: float = MIN_RAMP_DOWN_PERIOD_S
    """Time between two steps down."""
    max_wait_s: float = 0.0
    """A step down that had to be taken back before the next one was due doubles that time, up to this one."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """The size so far, and when it last became smaller. Before the first step: 0, and never.

    `wait_s` is the time to the next step down where that is more than usual, `regretted` whether the last step down has
    been taken back: a load that only swings does not move the size with every swing.
    """

    size: int = 0
    last_down_s: float = -math.inf
    wait_s: float = 0.0
    regretted: bool = False


def rounded(required: float, even: Even) -> int:
    """A whole size for a requirement: up, and unless "off" up to an even number, so that no core is split."""
    size = math.ceil(required)
    return size if even == "off" else size + size % 2


def regulated(ramp: Ramp, limits: Limits, now_s: float, wanted: int, effective: int | None) -> Ramp:
    """The next size: `wanted`, not too far from the size in force, inside the clamp.

    `effective` is the size in force, None where it is unknown: then nothing limits the step. With "after_limits" an odd
    result is rounded once more: up, or down where up would leave the clamp.
    """
    size = wanted if effective is None else _stepped(ramp, limits, now_s, wanted, effective)
    size = min(max(size, limits.lower), limits.upper)
    if limits.even == "after_limits" and size % 2:
        size = next((even for even in (size + 1, size - 1) if limits.lower <= even <= limits.upper), size)
    if size == ramp.size:
        return ramp
    if size < ramp.size:
        return Ramp(size, now_s, ramp.wait_s if ramp.regretted else 0.0)
    if ramp.regretted or not _is_waiting(ramp, limits, now_s):
        return replace(ramp, size=size)
    return Ramp(size, ramp.last_down_s, min(2 * _wait_s(ramp, limits), limits.max_wait_s), regretted=True)


def _stepped(ramp: Ramp, limits: Limits, now_s: float, wanted: int, effective: int) -> int:
    if wanted < effective:
        waiting = _is_waiting(ramp, limits, now_s)
        return effective if waiting else max(wanted, effective - limits.max_down_step)
    return wanted if limits.max_up_step is None else min(wanted, effective + limits.max_up_step)


def _wait_s(ramp: Ramp, limits: Limits) -> float:
    return max(ramp.wait_s, limits.down_period_s)


def _is_waiting(ramp: Ramp, limits: Limits, now_s: float) -> bool:
    return now_s < ramp.last_down_s + _wait_s(ramp, limits)


class RegulateStep(Question):
    """What a pool needs at one moment, and the size in force then."""

    t_s: Annotated[float, Field(ge=-1e12, le=1e12)]
    required_cores: Cores
    effective_cpus: Cpus | None = None


class RegulateQuestion(Question):
    """The limits of one pool, and its requirement over time."""

    reserved_for_allocate_cores: Cores
    lower_cpus: Cpus
    upper_cpus: Cpus
    even: Even = "after_limits"
    max_ramp_up_step_cpus: Cpus | None = None
    max_ramp_down_step_cpus: Cpus = MAX_RAMP_DOWN_STEP_CPUS
    min_ramp_down_period_s: Seconds = MIN_RAMP_DOWN_PERIOD_S
    steps: list[RegulateStep]

    @model_validator(mode="after")
    def _time_goes_on(self) -> Self:
        times = [step.t_s for step in self.steps]
        if times != sorted(times):
            raise ValueError("steps: t_s goes back")
        return self


class RegulatedStep(Answer):
    """The size before the step limits and the clamp, and after them."""

    rounded_cpus: int
    size_cpus: int


class RegulateAnswer(Answer):
    """One size for each step."""

    steps: list[RegulatedStep]


@decision("regulate", area="cpu_sizing", asks=RegulateQuestion, answers=RegulateAnswer)
def regulate(question: RegulateQuestion) -> RegulateAnswer:
    """From requirement to pool size, over time: reserve, round to even, step limits, clamp."""
    limits = Limits(
        question.lower_cpus,
        question.upper_cpus,
        question.even,
        question.max_ramp_up_step_cpus,
        question.max_ramp_down_step_cpus,
        question.min_ramp_down_period_s,
    )
    ramp, sizes = Ramp(), []
    for step in question.steps:
        wanted = rounded(step.required_cores + question.reserved_for_allocate_cores, limits.even)
        ramp = regulated(ramp, limits, step.t_s, wanted, step.effective_cpus)
        sizes.append(RegulatedStep(rounded_cpus=wanted, size_cpus=ramp.size))
    return RegulateAnswer(steps=sizes)
