"""The what-if kinds `estimate_container_cpu` and `provision_canonical` estimate a container's cores and a region's."""

from collections.abc import Mapping
from typing import Literal

from services.advisor.core.demand.cpu import DEFAULT_RULE, EstimateRule, estimate_cores, requested_cores, total_cores
from services.advisor.core.model.figures import Figures
from services.advisor.core.model.region import part_on
from services.advisor.whatif.quantities import Cores
from shared.contracts.envelope import CpuList
from shared.contracts.pod import QosClass
from shared.core.cpus.cpuset import CpuSet
from shared.whatif.decisions import Answer, Question, decision

RuleName = Literal["v0.1.0", "head"]
RULES: Mapping[RuleName, EstimateRule] = {"v0.1.0": EstimateRule(1.0, True), "head": DEFAULT_RULE}
"""The rule of the tutorial of January 2023, and today's (docs/facts/katalyst-cpu.md#estimate-of-a-container)."""


class EstimateQuestion(Question):
    """One shared container."""

    usage_cores: Cores | None = None
    load1: Cores | None = None
    load5: Cores | None = None
    request_cores: Cores
    enable_reclaim: bool
    rule: RuleName | None = None


class EstimateAnswer(Answer):
    """Cores that count for the container."""

    estimate_cores: float


@decision("estimate_container_cpu", area="cpu_sizing", asks=EstimateQuestion, answers=EstimateAnswer)
def estimate_container_cpu(question: EstimateQuestion) -> EstimateAnswer:
    """How many cores one shared container needs."""
    figures = Figures(question.usage_cores, question.load1, question.load5)
    return EstimateAnswer(
        estimate_cores=_estimate(figures, question.request_cores, question.enable_reclaim, question.rule)
    )


def _estimate(figures: Figures, request_cores: float, by_figures: bool, rule: RuleName | None) -> float:
    if not by_figures:
        return requested_cores(request_cores)
    return estimate_cores(figures, request_cores, RULES[rule] if rule else DEFAULT_RULE)


class RegionContainer(Question):
    """One container of a region; with `cpuset_per_numa` (NUMA node to CPU list) only its part in the region counts."""

    qos: QosClass
    request_cores: Cores
    ramp_up: bool = False
    usage_cores: Cores | None = None
    load1: Cores | None = None
    load5: Cores | None = None
    cpuset_per_numa: dict[int, CpuList] | None = None


class ProvisionQuestion(Question):
    """The containers of a region, and the NUMA nodes the region lies in."""

    containers: list[RegionContainer]
    region_numas: list[int] | None = None
    enable_reclaim: bool = True
    rule: RuleName | None = None


class ProvisionAnswer(Answer):
    """Cores that the region's containers need together."""

    required_cores: float


@decision("provision_canonical", area="cpu_sizing", asks=ProvisionQuestion, answers=ProvisionAnswer)
def provision_canonical(question: ProvisionQuestion) -> ProvisionAnswer:
    """The CPU requirement of a region: the sum of its containers' estimates."""
    return ProvisionAnswer(required_cores=total_cores(_required(c, question) for c in question.containers))


def _required(container: RegionContainer, question: ProvisionQuestion) -> float:
    if container.qos not in ("shared_cores", "dedicated_cores"):
        return 0.0
    figures = Figures(container.usage_cores, container.load1, container.load5)
    by_figures = question.enable_reclaim and not container.ramp_up
    estimate = _estimate(figures, container.request_cores, by_figures, question.rule)
    cpus = {numa: len(CpuSet.parse(text)) for numa, text in (container.cpuset_per_numa or {}).items()}
    return estimate * part_on(cpus, question.region_numas or ())
