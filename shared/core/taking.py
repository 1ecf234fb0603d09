"""Which CPUs a pool of a given size gets: balanced over the NUMA nodes (notes/katalyst-node-agent.md section 2.2)."""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, model_validator

from shared.core.cpuset import CpuSet, canonical_cpu_list
from shared.core.decisions import Answer, Question, decision
from shared.core.topology import Topology
from shared.core.topology_input import TopologyInput
from shared.errors import Refused

Granularity = Literal["core", "thread"]
NOT_ENOUGH_CPUS = "not_enough_cpus"


def take_by_numa_balance(
    topology: Topology,
    available: CpuSet,
    count: int,
    *,
    granularity: Granularity = "core",
    reverse: bool = False,
) -> CpuSet:
    """Take `count` of the available CPUs, turn by turn from each NUMA node, ascending.

    With "core" whole free cores go first, while a whole core is still needed; what is left of the need, and everything
    with "thread", is taken CPU by CPU. Inside a node the lowest id goes first, with `reverse` the highest; the nodes
    take turns in ascending order either way. A count below 1 takes nothing. A core is free when all its CPUs are
    available, so a core with a sibling offline counts as whole. Linear in the number of CPUs.

    Raises:
        Refused: `not_enough_cpus`, fewer CPUs are available than wanted.
    """
    if count < 1:
        return CpuSet()
    if count > len(available):
        raise Refused(f"{count} CPUs wanted, {len(available)} available ({available})", reason=NOT_ENOUGH_CPUS)
    taken = 0
    if granularity == "core" and count >= topology.threads_per_core:
        taken = _take(_in_turns(_free_cores(topology, available, reverse)), count)
    rest = CpuSet(available.mask & ~taken)
    return CpuSet(taken | _take(_in_turns(_single_cpus(topology, rest, reverse)), count - taken.bit_count()))


def _free_cores(topology: Topology, available: CpuSet, reverse: bool) -> Iterator[list[int]]:
    """For each NUMA node the masks of its free cores, in taking order."""
    masks = topology.cores
    for ids in topology.core_ids_by_numa.values():
        free = [mask for core in ids if not (mask := masks[core].mask) & ~available.mask]
        yield free[::-1] if reverse else free


def _single_cpus(topology: Topology, available: CpuSet, reverse: bool) -> Iterator[list[int]]:
    """For each NUMA node the masks of its available CPUs, in taking order."""
    for cpus in topology.numas.values():
        bits = [1 << cpu for cpu in cpus & available]
        yield bits[::-1] if reverse else bits


def _in_turns(lists: Iterable[list[int]]) -> Iterator[int]:
    """First of each list, second of each list, and so on; a list that has run out is passed over."""
    for turn in zip_longest(*lists):
        yield from (mask for mask in turn if mask is not None)


def _take(units: Iterator[int], need: int) -> int:
    """The union of the units that fit into the need, in order."""
    taken = 0
    for unit in units:
        if need < 1:
            break
        if (size := unit.bit_count()) <= need:
            taken |= unit
            need -= size
    return taken


class TakeQuestion(Question):
    """Inputs of `take_by_numa_balance`."""

    topology: TopologyInput
    available: Annotated[str, AfterValidator(canonical_cpu_list)]
    request_cpus: int
    granularity: Granularity = "core"
    reverse: bool = False

    @model_validator(mode="after")
    def _known_cpus(self) -> Self:
        if unknown := CpuSet.parse(self.available) - self.topology.topology.all:
            raise ValueError(f"available: CPUs {unknown} are not in the topology")
        return self


class TakeAnswer(Answer):
    """What was taken and what is left; with an error nothing was taken."""

    cpuset: str = ""
    remaining: str = ""
    error: str | None = None
    message: str | None = None


@decision("take_by_numa_balance", area="placement", asks=TakeQuestion, answers=TakeAnswer)
def take_by_numa_balance_answer(question: TakeQuestion) -> TakeAnswer:
    """Take CPUs round-robin over NUMA nodes."""
    available = CpuSet.parse(question.available)
    try:
        taken = take_by_numa_balance(
            question.topology.topology,
            available,
            question.request_cpus,
            granularity=question.granularity,
            reverse=question.reverse,
        )
    except Refused as refusal:
        return TakeAnswer(remaining=str(available), error=refusal.reason, message=str(refusal))
    return TakeAnswer(cpuset=str(taken), remaining=str(available - taken))
