"""CPUs packed: whole NUMA nodes or sockets, then cores, then threads (docs/facts/katalyst-cpu.md#packed-taking)."""

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.units import Taking, free
from shared.core.cpus.topology import Topology
from shared.whatif.decisions import decision
from shared.whatif.taking import TakeAnswer, TakeQuestion, take_answer
from sublet.reference.free_units import cores_in_order, leading_in_order, second_in_order


def take_packed(topology: Topology, available: CpuSet, count: int) -> CpuSet:
    """Take `count` of the available CPUs so that what is nearly used up is used up first; below 1 takes nothing.

    Each step reads its order (`sublet.reference.free_units`) anew: free NUMA nodes and sockets, free cores,
    single CPUs. A unit larger than what is still needed is passed over.

    Raises:
        Refused: `not_enough_cpus`, fewer CPUs are available than wanted.
    """
    taking = Taking(available, count)
    for order in (leading_in_order, second_in_order, cores_in_order):
        if taking.need:
            taking.whole(free(order(topology, taking.left), taking.left))
    if taking.need:
        taking.singly(cores_in_order(topology, taking.left))
    return taking.cpus


@decision("take_packed", area="placement", asks=TakeQuestion, answers=TakeAnswer)
def take_packed_answer(question: TakeQuestion) -> TakeAnswer:
    """Take CPUs packed: whole NUMA nodes or sockets, then cores, then threads."""
    machine, available = question.topology.topology, question.available_cpus
    return take_answer(available, lambda: take_packed(machine, available, question.request_cpus))
