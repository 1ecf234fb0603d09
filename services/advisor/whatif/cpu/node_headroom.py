"""The what-if kind `node_headroom` measures the CPU headroom of a machine that a question describes."""

from collections import Counter
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from services.advisor.core.offer.headroom import (
    MILLIS,
    GroupUse,
    HeadroomRules,
    NumaPool,
    ReclaimedUse,
    Rounding,
    node_headroom_millis,
    numa_pools,
)
from services.advisor.core.offer.utilization import UtilRules
from services.advisor.whatif.quantities import NonNegativeCores, Ratio
from shared.core.cpus.cpuset import CpuSet, canonical_cpu_list
from shared.whatif.decisions import Answer, Question, decision
from shared.whatif.topology_input import TopologyInput

CpuListText = Annotated[str, AfterValidator(canonical_cpu_list)]
UTIL = UtilRules()


class NodeCpuUsage(Question):
    """How much each of these CPUs is used."""

    cpus: CpuListText
    ratio: Annotated[float, Field(ge=0, le=1e6)]


class CgroupUse(Question):
    """A cgroup's use, and its quota in each period; -1: none."""

    usage_cores: NonNegativeCores
    quota_us: Annotated[int, Field(ge=-1, le=1 << 60)]
    period_us: Annotated[int, Field(ge=1, le=1 << 60)]

    @property
    def group(self) -> GroupUse:
        """The same in cores."""
        return GroupUse(self.usage_cores, self.quota_us / self.period_us if self.quota_us >= 0 else None)


class NodeHeadroomQuestion(Question):
    """The machine, its reclaim pool, and how much of it is used by whom."""

    topology: TopologyInput
    enable_reclaim: bool
    util_based: bool
    rounding: Rounding = "milli"
    reclaim_pool: CpuListText
    cpu_usage: list[NodeCpuUsage]
    reclaim_cgroup: CgroupUse
    reclaim_cgroup_per_numa: dict[int, CgroupUse] | None = None
    last_reported_cores: dict[int, NonNegativeCores]
    numas_bound_by_pods: list[int]
    target_util_ratio: Ratio = UTIL.target_ratio
    max_util_ratio: Ratio = UTIL.max_ratio
    max_oversold_ratio: Ratio = UTIL.max_oversold_ratio
    max_capacity_ratio: Ratio = 1.0

    @model_validator(mode="after")
    def _cpus_of_the_machine(self) -> Self:
        if unknown := CpuSet.parse(self.reclaim_pool) - self.topology.topology.all:
            raise ValueError(f"reclaim_pool: CPUs {unknown} are not in the topology")
        times = Counter(cpu for usage in self.cpu_usage for cpu in CpuSet.parse(usage.cpus))
        if twice := [cpu for cpu, count in sorted(times.items()) if count > 1]:
            raise ValueError(f"cpu_usage: CPU {twice[0]} is listed twice")
        return self

    @property
    def pools(self) -> dict[int, NumaPool]:
        """The pool's part of every NUMA node."""
        used = {cpu: usage.ratio for usage in self.cpu_usage for cpu in CpuSet.parse(usage.cpus)}
        last = {numa: cores * MILLIS for numa, cores in self.last_reported_cores.items()}
        return numa_pools(CpuSet.parse(self.reclaim_pool), self.topology.topology.numas, used, last)

    @property
    def rules(self) -> HeadroomRules:
        """How it is measured and rounded."""
        util = UtilRules(self.target_util_ratio, self.max_util_ratio, self.max_oversold_ratio)
        return HeadroomRules(util if self.util_based else None, self.max_capacity_ratio, self.rounding)


class NodeHeadroomAnswer(Answer):
    """Milli-cores by NUMA node, and in all."""

    total_millicpu: int
    per_numa_millicpu: dict[int, int]


@decision("node_headroom", area="cpu_headroom", asks=NodeHeadroomQuestion, answers=NodeHeadroomAnswer)
def node_headroom(question: NodeHeadroomQuestion) -> NodeHeadroomAnswer:
    """Return what the node may report as reclaimed CPU."""
    bound = {numa: cgroup.group for numa, cgroup in (question.reclaim_cgroup_per_numa or {}).items()}
    use = ReclaimedUse(question.reclaim_cgroup.group, bound)
    millis = node_headroom_millis(question.pools, use, question.numas_bound_by_pods, question.rules)
    if not question.enable_reclaim:
        millis = dict.fromkeys(millis, 0)
    return NodeHeadroomAnswer(total_millicpu=sum(millis.values()), per_numa_millicpu=millis)
