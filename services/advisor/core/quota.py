"""CPU time that reclaimed pods may use on one NUMA node (docs/facts/katalyst-cpu.md#dynamic-quota)."""

from typing import Annotated

from pydantic import Field

from services.advisor.core.estimate import Cores
from services.advisor.core.regulate import Cpus
from shared.core.decisions import Answer, Question, decision
from shared.errors import Refused

Ratio = Annotated[float, Field(ge=0, le=1e6)]


def reclaim_quota_cores(
    cpus: int | None,
    target_usage_ratio: float,
    current_usage_ratio: float | None,
    reclaim_usage_cores: float | None,
    floor_cores: float,
) -> float:
    """What reclaimed pods use now, and what is missing to the target over their CPUs; never below the floor.

    Args:
        cpus: CPUs that reclaimed pods may use on the node.
        target_usage_ratio: how busy those CPUs should be, by all that runs on them; `current_usage_ratio` is now.
        reclaim_usage_cores: of the reclaimed pods.
        floor_cores: what they keep in any case.

    Raises:
        Refused: `missing_metric`, a usage is not known; `no_cpus`, there is no CPU to measure on.
    """
    if reclaim_usage_cores is None or current_usage_ratio is None:
        raise Refused("quota: the usage is not known; wait for the next sample", reason="missing_metric")
    if not cpus:
        raise Refused("quota: the NUMA node has no CPU for reclaimed pods", reason="no_cpus")
    return max(cpus * (target_usage_ratio - current_usage_ratio) + reclaim_usage_cores, floor_cores)


class QuotaQuestion(Question):
    """One NUMA node. `reclaim_cpus_per_numa` absent: there is no reclaimed pool, all CPUs of the node count."""

    numa_binding: bool
    numa: int | None = None
    numa_cpus: Cpus | None = None
    reclaim_cpus_per_numa: dict[int, Cpus] | None = None
    target_usage_ratio: Ratio
    current_usage_ratio: Ratio
    reclaim_usage_cores: Cores | None = None
    reserved_for_reclaim_cores: Cores


class QuotaAnswer(Answer):
    """The quota; null where the region is bound to no NUMA node."""

    reclaim_quota_cores: float | None = None
    error: str | None = None
    message: str | None = None


@decision("provision_dynamic_quota", area="cpu_sizing", asks=QuotaQuestion, answers=QuotaAnswer)
def provision_dynamic_quota(question: QuotaQuestion) -> QuotaAnswer:
    """The cpu quota of the reclaimed cgroup on one NUMA node."""
    if not question.numa_binding:
        return QuotaAnswer()
    pool = question.reclaim_cpus_per_numa
    cpus = question.numa_cpus if pool is None else pool.get(-1 if question.numa is None else question.numa, 0)
    return QuotaAnswer(
        reclaim_quota_cores=reclaim_quota_cores(
            cpus,
            question.target_usage_ratio,
            question.current_usage_ratio,
            question.reclaim_usage_cores,
            question.reserved_for_reclaim_cores,
        )
    )
