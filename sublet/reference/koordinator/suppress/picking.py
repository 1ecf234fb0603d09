"""CPUs spread over NUMA nodes and stacked on cores (docs/facts/koordinator-cpu-suppress.md#picking-cpus)."""

from collections.abc import Iterator
from itertools import groupby

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Cpu, Topology
from shared.whatif.decisions import Answer, Question, decision
from shared.whatif.topology_input import TopologyInput

Bucket = list[Cpu]
"""CPUs of one NUMA node and socket, siblings beside each other."""


def picked_cpus(topology: Topology, candidates: CpuSet, count: int) -> tuple[int, ...]:
    """`count` of the candidates in the order of picking; none where there are fewer."""
    if not 0 < count <= len(candidates):
        return ()
    buckets = _buckets(topology, candidates)
    picked: list[int] = []
    turn = _pick_pairs(buckets, count, picked)
    _pick_singles(buckets, count, picked, turn)
    return tuple(picked)


def _buckets(topology: Topology, candidates: CpuSet) -> list[Bucket]:
    """The largest first, then the one with the smallest CPU."""
    rows = sorted(
        (cpu for cpu in topology.cpus if cpu.id in candidates), key=lambda cpu: (cpu.numa, cpu.socket, cpu.core, cpu.id)
    )
    buckets = [list(group) for _, group in groupby(rows, key=lambda cpu: (cpu.numa, cpu.socket))]
    return sorted(buckets, key=lambda bucket: (-len(bucket), min(cpu.id for cpu in bucket)))


def _pick_pairs(buckets: list[Bucket], count: int, picked: list[int]) -> int:
    """Take two threads of one core of each bucket in turn while two fit; the bucket whose turn is next."""
    pairs = [_pairs(bucket) for bucket in buckets]
    turn = unlucky = 0
    # A round in which no bucket has a pair left is the last one.
    while count - len(picked) > 1 and not (turn == 0 and unlucky >= len(buckets)):
        pair = next(pairs[turn], ())
        picked += pair
        unlucky = 0 if pair else unlucky + 1
        turn = (turn + 1) % len(buckets)
    return turn


def _pairs(bucket: Bucket) -> Iterator[tuple[int, int]]:
    for _, siblings in groupby(bucket, key=lambda cpu: cpu.core):
        ids = [cpu.id for cpu in siblings]
        yield from zip(ids[::2], ids[1::2], strict=False)


def _pick_singles(buckets: list[Bucket], count: int, picked: list[int], turn: int) -> None:
    """Take one thread of each bucket in turn, beginning with `turn`."""
    taken = set(picked)
    left = [iter([cpu.id for cpu in bucket if cpu.id not in taken]) for bucket in buckets]
    while len(picked) < count:
        picked += [cpu for cpu in (next(left[turn], None),) if cpu is not None]
        turn = (turn + 1) % len(buckets)


class PickQuestion(Question):
    """A machine all of whose CPUs may be taken, and how many are wanted."""

    topology: TopologyInput
    want_cpus: int


class PickAnswer(Answer):
    """The CPUs, the first pick first; none where the machine has too few."""

    cpus_in_order: list[int]


@decision("cpuset_pick", area="koord_cpu_suppress", asks=PickQuestion, answers=PickAnswer)
def cpuset_pick(question: PickQuestion) -> PickAnswer:
    """Pick CPUs spread over NUMA nodes, stacked on cores, after Koordinator."""
    machine = question.topology.topology
    return PickAnswer(cpus_in_order=list(picked_cpus(machine, machine.all, question.want_cpus)))
