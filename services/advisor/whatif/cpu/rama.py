"""The what-if kind `provision_rama` corrects a size by indicators."""

from typing import Annotated

from pydantic import Field

from services.advisor.core.demand.pid import Gains, Indicator, SizeRange, corrected
from services.advisor.whatif.quantities import Cores, Ratio
from shared.whatif.decisions import Answer, Question, decision

Gain = Annotated[float, Field(ge=-1e6, le=1e6)]
Figure = Annotated[float, Field(ge=0, le=1e18)]


class PidInput(Question):
    """The parameters of one controller."""

    kpp: Gain
    kpn: Gain
    kdp: Gain
    kdn: Gain
    adjustment_upper: Cores
    adjustment_lower: Cores
    deadband_upper: Ratio
    deadband_lower: Ratio


class IndicatorInput(Question):
    """One indicator: what it is, what it should be, and its controller."""

    name: str
    current: Figure
    target: Annotated[float, Field(gt=0, le=1e18)]
    pid: PidInput


class RamaQuestion(Question):
    """Indicators of a region, the size in force, and its bounds."""

    indicators: list[IndicatorInput]
    current_cores: Cores
    lower_cores: Cores
    upper_cores: Cores


class RamaAnswer(Answer):
    """The largest of the indicators' results; without any the size in force, inside its bounds."""

    required_cores: float


@decision("provision_rama", area="cpu_sizing", asks=RamaQuestion, answers=RamaAnswer)
def provision_rama(question: RamaQuestion) -> RamaAnswer:
    """The requirement corrected by indicators against targets."""
    sizes = SizeRange(question.current_cores, question.lower_cores, question.upper_cores)
    asked = [
        corrected({one.name: Indicator(one.current, one.target, Gains(**one.pid.model_dump()))}, sizes)[1][one.name]
        for one in question.indicators
    ]
    return RamaAnswer(required_cores=max(asked, default=sizes.clamp(sizes.current_cores)))
