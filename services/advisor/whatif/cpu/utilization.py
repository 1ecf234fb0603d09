"""The what-if kind `util_based_capacity` sizes the CPU offer by the use of the pool."""

from services.advisor.core.offer.utilization import UtilRules, util_capacity_cores
from services.advisor.whatif.quantities import NonNegativeCores, Ratio
from shared.whatif.decisions import Answer, Question, decision


class UtilCapacityQuestion(Question):
    """A reclaim pool: what it can supply, what is used of it, what was offered last, and the rules."""

    supply_cores: NonNegativeCores
    reclaim_usage_cores: NonNegativeCores
    last_cores: NonNegativeCores
    target_util_ratio: Ratio
    max_util_ratio: Ratio
    max_oversold_ratio: Ratio
    max_capacity_cores: NonNegativeCores


class UtilCapacityAnswer(Answer):
    """Cores that may be offered."""

    capacity_cores: float


@decision("util_based_capacity", area="cpu_headroom", asks=UtilCapacityQuestion, answers=UtilCapacityAnswer)
def util_based_capacity(question: UtilCapacityQuestion) -> UtilCapacityAnswer:
    """Capacity of the reclaim pool from its own utilisation."""
    rules = UtilRules(question.target_util_ratio, question.max_util_ratio, question.max_oversold_ratio)
    cores = util_capacity_cores(
        question.supply_cores, question.reclaim_usage_cores, question.last_cores, rules, question.max_capacity_cores
    )
    return UtilCapacityAnswer(capacity_cores=cores)
