"""The what-if kind `advisor_pool_entries` plays whole rounds of the advisor on a node that a question describes."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from services.advisor.core.demand.cpu import DEFAULT_RULE, estimate_cores, requested_cores, total_cores
from services.advisor.core.demand.kept import lends
from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.profile import PodProfile
from services.advisor.core.model.ramp import RampPace
from services.advisor.core.model.region import Region, part_in
from services.advisor.core.model.shape import Footprint, NodeCpus, Shape
from services.advisor.core.model.view import ContainerView
from services.advisor.core.sizing.driver import SizedRegions, SizingInput, size_regions
from services.advisor.core.sizing.isolation import IsolationRules
from services.advisor.core.sizing.provision import Need, Provision, footprints_of
from services.advisor.core.sizing.regions import split
from services.advisor.core.sizing.reserves import kept_for_reclaim
from services.advisor.whatif.cpu.estimate import RULES, RuleName
from services.advisor.whatif.quantities import Cores, Cpus, Ratio
from shared.contracts.envelope import CpuList
from shared.contracts.pod import QosClass
from shared.core.cgroups.layout import RECLAIM
from shared.core.cpus.cpuset import CpuSet
from shared.whatif.decisions import Answer, Question, decision
from shared.whatif.topology_input import TopologyInput

ROUND_S = 5.0
NAMED_REVISION = RampPace(max_up_step_cpus=10, even="before_limits")
"""How the revisions that have a name change sizes (docs/facts/katalyst-cpu.md#regulator)."""


class EntryContainer(Question):
    """One container: what it asked for, what is measured of it, and where it runs."""

    pod: str
    container: str
    qos: QosClass
    pool: str | None = None
    request_cores: Cores
    limit_cores: Cores
    usage_cores: Cores | None = None
    load1: Cores | None = None
    load5: Cores | None = None
    nr_runnable: Ratio | None = None
    numa_binding: bool = False
    numa_exclusive: bool = False
    cpuset: CpuList = ""


class EntryIsolation(Question):
    """Settings of isolation, which is on; missing ones have Katalyst's default
    (docs/facts/katalyst-cpu.md#isolation)."""

    max_resource_ratio: Ratio
    lock_in_threshold: Annotated[int, Field(ge=0, le=1_000_000)]
    lock_out_s: Annotated[float, Field(ge=0, le=1e9)]


class ServiceProfile(Question):
    """How a service does: one that does poorly lends nothing."""

    performance: Literal["poor", "good", "perfect"]
    score: float | None = None


class EntriesQuestion(Question):
    """The state of a node, and for how many rounds it stays so."""

    rule: RuleName | None = None
    topology: TopologyInput
    reserve_pool: CpuList
    reserved_for_allocate_cores: Cores = 4.0
    reserved_for_reclaim_cores: Cpus = 4
    enable_reclaim: bool
    pools: dict[str, CpuList]
    containers: list[EntryContainer]
    isolation: EntryIsolation | None = None
    service_profiles: dict[str, ServiceProfile] = {}
    updates: Annotated[int, Field(ge=1, le=10_000)] = 1


class EntriesAnswer(Answer):
    """Sizes by pool and NUMA node, and CPUs that reclaimed pods may use inside dedicated containers' sets."""

    pool_sizes: dict[str, dict[int, int]]
    dedicated_overlap: dict[int, dict[str, int]]


@decision("advisor_pool_entries", area="cpu_sizing", asks=EntriesQuestion, answers=EntriesAnswer)
def advisor_pool_entries(question: EntriesQuestion) -> EntriesAnswer:
    """A whole advice round (or several): state of the node in, pool sizes out."""
    described, last = _DescribedNode(question), SizedRegions()
    for number in range(question.updates):
        needs_of = partial(described.needs, last.provision)
        last = size_regions(described.sizing, needs_of, last, number * ROUND_S)
    assembled = last.provision.assembled
    return EntriesAnswer(
        pool_sizes={pool: dict(sizes) for pool, sizes in assembled.pools.items()},
        dedicated_overlap=described.by_container(assembled.dedicated_overlap),
    )


class _DescribedNode:
    """The node of a question as the driver takes it, and what its regions need."""

    def __init__(self, question: EntriesQuestion) -> None:
        self._question = question
        self._topology = question.topology.topology
        reserve = CpuSet.parse(question.reserve_pool) & self._topology.all
        cpus = {numa: len(inside) for numa, inside in self._topology.numas.items()}
        node = NodeCpus(
            available={numa: len(inside - reserve) for numa, inside in self._topology.numas.items()},
            kept_for_reclaim=kept_for_reclaim(cpus, question.reserved_for_reclaim_cores),
            reserve_pool_cpus=len(reserve),
            reclaim=question.enable_reclaim,
        )
        containers = sorted((self._view(one) for one in question.containers), key=lambda c: (c.pod, c.name))
        self.sizing = SizingInput(
            Shape(node, cpus, self._topology.smt, question.reserved_for_allocate_cores),
            containers,
            RampPace() if question.rule is None else NAMED_REVISION,
            None if question.isolation is None else IsolationRules(**question.isolation.model_dump()),
        )

    def _view(self, one: EntryContainer) -> ContainerView:
        inside = CpuSet.parse(one.cpuset) or CpuSet.parse(self._question.pools.get(one.pool or "", ""))
        return ContainerView(
            pod=one.pod,
            uid=one.pod,
            name=one.container,
            qos=one.qos,
            request_cores=one.request_cores,
            request_bytes=0,
            cpu=Figures(one.usage_cores, one.load1, one.load5),
            memory=Resident(),
            limit_cores=one.limit_cores,
            pool=one.pool or "",
            cpus_per_numa=tuple((n, len(cpus & inside)) for n, cpus in self._topology.numas.items() if cpus & inside),
            dedicated=one.qos == "dedicated_cores",
            bound=one.numa_binding,
            exclusive=one.numa_exclusive,
            runnable=one.nr_runnable,
            profile=self._profile(one.pod),
        )

    def _profile(self, pod: str) -> PodProfile | None:
        told = self._question.service_profiles.get(pod)
        return None if told is None else PodProfile(pod, kept_for="poor" if told.performance == "poor" else "")

    def needs(self, before: Provision, isolated: Collection[str]) -> list[Need]:
        """One need for each region when these pods are isolated."""
        shape, containers = self.sizing.shape, self.sizing.containers
        bound = {r.numa for r in split(containers, always_share=False) if r.numa is not None}
        always = self._question.rule != "head" and bool(set(shape.cpus) - bound)
        regions = split(containers, isolated, always_share=always)
        footprints = footprints_of(shape, regions)
        return [self._need(region, footprints[region.name], before) for region in regions]

    def _need(self, region: Region, footprint: Footprint, before: Provision) -> Need:
        reclaimable = all(self._lends(container) for container in region.containers) or region.type != "dedicated"
        required = total_cores(self._estimate(c) * part_in(c, region.numa) for c in region.containers)
        reclaimable = reclaimable and self._question.enable_reclaim
        return Need(region, footprint, required, self._effective(region, before), reclaimable)

    def _lends(self, container: ContainerView) -> bool:
        return self._question.enable_reclaim and lends(container)

    def _estimate(self, container: ContainerView) -> float:
        if not self._lends(container):
            return requested_cores(container.request_cores)
        rule = RULES[self._question.rule] if self._question.rule else DEFAULT_RULE
        return estimate_cores(container.cpu, container.request_cores, rule)

    def _effective(self, region: Region, before: Provision) -> int | None:
        """Return the last result; before the first one, the current size of the region."""
        if region.name in before.regulated:
            return before.regulated[region.name].ramp.size
        if region.type == "share":
            return len(CpuSet.parse(self._question.pools.get(region.pool, ""))) or None
        if region.exclusive and region.numa is not None:
            reclaimed = CpuSet.parse(self._question.pools.get(RECLAIM, "")) & self._topology.numas[region.numa]
            return self.sizing.shape.node.available[region.numa] - len(reclaimed)
        return int(region.request_cores) or None

    def by_container(self, overlap: Mapping[int, Mapping[str, int]]) -> dict[int, dict[str, int]]:
        """Overlap by container instead of by pod: all containers of a pod have the same CPUs."""
        return {
            numa: {f"{c.pod}/{c.name}": pods[c.pod] for c in self.sizing.containers if c.dedicated and c.pod in pods}
            for numa, pods in overlap.items()
        }
