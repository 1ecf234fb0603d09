"""The what-if kind `provision_dynamic_quota` limits the CPU time of reclaimed pods on one NUMA node."""

from services.advisor.core.demand.quota import reclaim_quota_cores
from services.advisor.whatif.quantities import Cores, Cpus, Ratio
from shared.whatif.decisions import Answer, Question, decision


class QuotaQuestion(Question):
    """One NUMA node. Without `reclaim_cpus_per_numa` there is no reclaimed pool, and all CPUs of the node count."""

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
