"""CPUs evenly over the fewest NUMA nodes that can hold them (docs/facts/katalyst-cpu.md#distributed-taking)."""

from typing import Annotated

from pydantic import Field

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.units import Taking
from shared.core.cpus.topology import Topology
from shared.whatif.decisions import decision
from shared.whatif.taking import TakeAnswer, TakeQuestion, take_answer
from sublet.reference.even_split import even_parts
from sublet.reference.free_units import numas_in_order
from sublet.reference.packed import take_packed


def take_distributed(topology: Topology, available: CpuSet, count: int, *, group_cpus: int = 1) -> CpuSet:
    """Take `count` of the available CPUs in groups of `group_cpus`, evenly over as few NUMA nodes as can hold them.

    Among equally few nodes those are chosen that leave the machine most even (`sublet.reference.even_split`).
    Inside a node CPUs are taken packed. Where no even split exists, or the count is no multiple of the group, all is
    taken packed. A count below 1 takes nothing.

    Raises:
        Refused: `not_enough_cpus`, fewer CPUs are available than wanted.
        ValueError: a group of less than one CPU.
    """
    if group_cpus < 1:
        raise ValueError(f"group_cpus {group_cpus}: want at least 1")
    if not Taking(available, count).need:
        return CpuSet()
    if (parts := None if count % group_cpus else _parts(topology, available, count, group_cpus)) is None:
        return take_packed(topology, available, count)
    left = available
    for numa, cpus in parts:
        left -= take_packed(topology, left & topology.numas[numa], cpus)
    return available - left


def _parts(topology: Topology, available: CpuSet, count: int, group_cpus: int) -> list[tuple[int, int]] | None:
    """NUMA node and CPUs of each part, in the order of taking; None where no even split exists."""
    numas = numas_in_order(topology, available.mask)
    free = [(mask & available.mask).bit_count() for _, mask in numas]
    groups_per_numa = _ceil(_ceil(len(topology.cpus), group_cpus), len(topology.numas))
    parts = even_parts(free, count, group_cpus, fewest=_ceil(count // group_cpus, groups_per_numa))
    return None if parts is None else [(numas[index][0], cpus) for index, cpus in parts]


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


class DistributedQuestion(TakeQuestion):
    """Inputs of `take_distributed`; `group_cpus` stay together in one NUMA node."""

    group_cpus: Annotated[int, Field(ge=1)] = 1


@decision("take_distributed", area="placement", asks=DistributedQuestion, answers=TakeAnswer)
def take_distributed_answer(question: DistributedQuestion) -> TakeAnswer:
    """Take CPUs evenly over the fewest NUMA nodes that can hold them."""
    machine, available = question.topology.topology, question.available_cpus
    return take_answer(
        available, lambda: take_distributed(machine, available, question.request_cpus, group_cpus=question.group_cpus)
    )
