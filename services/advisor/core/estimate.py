"""How many cores a tenant container needs, and how many a region (docs/facts/katalyst-cpu.md#estimate-of-a-container).

A figure of 0 or less counts as missing: a container that was measured as doing nothing may only not have begun.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from shared.contracts.envelope import CpuList
from shared.contracts.pod import QosClass
from shared.core.cpus.cpuset import CpuSet
from shared.core.decisions import Answer, Question, decision

RuleName = Literal["v0.1.0", "head"]
Cores = Annotated[float, Field(ge=-1e6, le=1e6)]

FALLBACK_CORES = 4.0
"""For a container of which nothing is known, on a large machine: Katalyst's figure."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One revision of the rule: the factor on usage, and whether the request counts while some figure is missing."""

    usage_factor: float
    request_fills_gaps: bool


RULES: Mapping[RuleName, Rule] = {"v0.1.0": Rule(1.0, True), "head": Rule(1.25, False)}
"""The tutorial's rule of January 2023, and today's (docs/facts/katalyst-cpu.md#estimate-of-a-container)."""
DEFAULT_RULE = RULES["head"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What is measured of a container: CPU usage in cores and its load averages; None where missing."""

    usage_cores: float | None = None
    load1: float | None = None
    load5: float | None = None


def estimate_cores(
    figures: Figures, request_cores: float, rule: Rule = DEFAULT_RULE, fallback_cores: float = FALLBACK_CORES
) -> float:
    """The largest of usage x factor, 1- and 5-minute load; without any the request; without that the fallback."""
    usage = None if figures.usage_cores is None else figures.usage_cores * rule.usage_factor
    known = [figure for figure in (usage, figures.load1, figures.load5) if figure is not None and figure > 0]
    if not known or (rule.request_fills_gaps and len(known) < 3):
        known.append(request_cores)
    return max(known) if max(known) > 0 else fallback_cores


def requested_cores(request_cores: float, fallback_cores: float = FALLBACK_CORES) -> float:
    """What counts for a container that is not judged by its figures: its request, else the fallback."""
    return request_cores if request_cores > 0 else fallback_cores


def total_cores(estimates: Iterable[float]) -> float:
    """The sum, the same in every order of the terms."""
    return math.fsum(estimates)


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
    return estimate * _share_in_region(container.cpuset_per_numa, question.region_numas)


def _share_in_region(cpuset_per_numa: Mapping[int, str] | None, region_numas: list[int] | None) -> float:
    """Of the container's CPUs the part that lies in the region; 1 where either is not said."""
    if not cpuset_per_numa or not region_numas:
        return 1.0
    cpus = {numa: len(CpuSet.parse(text)) for numa, text in cpuset_per_numa.items()}
    assigned = sum(cpus.values())
    return sum(cpus.get(numa, 0) for numa in set(region_numas)) / assigned if assigned else 1.0
