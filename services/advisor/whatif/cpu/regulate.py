"""The what-if kind `regulate` follows the size of one pool over time."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from services.advisor.core.model.ramp import MAX_RAMP_DOWN_STEP_CPUS, MIN_RAMP_DOWN_PERIOD_S, Even, Ramp, RampLimits
from services.advisor.core.sizing.regulate import regulated, rounded
from services.advisor.whatif.quantities import Cores, Cpus, Seconds
from shared.whatif.decisions import Answer, Question, decision


class RegulateStep(Question):
    """What a pool needs at one moment, and its current size."""

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
    limits = RampLimits(
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
