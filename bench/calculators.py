"""Time to take all but 8 of n CPUs on two NUMA nodes, beside Katalyst's Go for the same task; rounds of policies.

    python -m bench.calculators

Katalyst's figures were measured once on a machine of two CPUs; they are constants here, not part of the run.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.rigs.policy_rounds import policy_rows
from bench.rigs.report import Row, machine, progress
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.balanced import take_by_numa_balance
from shared.core.cpus.taking.by_topology import take_by_topology
from shared.core.cpus.topology import Topology, UniformShape
from sublet.reference.distributed import take_distributed
from sublet.reference.free_units import free_units
from sublet.reference.packed import take_packed

ROUNDS = 200
SIZES = (48, 128, 256, 512, 1024)
LEFT_CPUS = 8
KATALYST_MS = {
    "take_by_numa_balance": {48: 0.36, 128: 2.8, 256: 12.7, 512: 40.0},
    "take_by_topology": {48: 0.28, 128: 1.7, 256: 5.9, 512: 20.0},
}
Calculator = Callable[[Topology, CpuSet, int], object]
CALCULATORS: dict[str, Calculator] = {
    "take_by_numa_balance": take_by_numa_balance,
    "take_by_topology": take_by_topology,
    "take_by_topology, L3": lambda *task: take_by_topology(*task, align_l3=True),
    "take_packed": take_packed,
    "take_distributed": lambda *task: take_distributed(*task, group_cpus=2),
    "free_units": lambda topology, available, _count: free_units(topology, available),
}


@dataclass(frozen=True, slots=True)
class Timing:
    """Median milliseconds of one calculator on a machine of `cpus` CPUs, and of its first call there."""

    calculator: str
    cpus: int
    median_ms: float
    first_ms: float

    @property
    def katalyst_ms(self) -> float | None:
        return KATALYST_MS.get(self.calculator, {}).get(self.cpus)

    @property
    def beside_katalyst(self) -> str:
        return "no figure" if self.katalyst_ms is None else f"{self.katalyst_ms / self.median_ms:.0f} times as fast"


def timings(rounds: int = ROUNDS) -> list[Timing]:
    """Every calculator on every size. The first call also groups the machine's CPUs, which later calls find done."""
    found = []
    for name, take in CALCULATORS.items():
        for cpus in SIZES:
            progress(f"{name}, {cpus} CPUs")
            made = Topology.uniform(
                UniformShape(
                    sockets=2, numa_per_socket=1, cores_per_numa=cpus // 4, threads=2, cores_per_l3=min(8, cpus // 8)
                )
            )
            spent = [_milliseconds(take, made, cpus - LEFT_CPUS) for _ in range(rounds + 1)]
            found.append(Timing(name, cpus, statistics.median(spent[1:]), spent[0]))
    return found


def _milliseconds(take: Calculator, topology: Topology, count: int) -> float:
    available = topology.all
    before = time.perf_counter_ns()
    take(topology, available, count)
    return (time.perf_counter_ns() - before) / 1e6


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    return [
        Row(
            f"{t.calculator}, {t.cpus} CPUs",
            f"{t.median_ms:.3f} ms",
            ROUNDS,
            "" if t.katalyst_ms is None else f"{t.katalyst_ms} ms (Katalyst): {t.beside_katalyst}",
        )
        for t in timings()
    ] + policy_rows("canonical", "adaptive")


def main() -> None:
    print(f"all but {LEFT_CPUS} of n CPUs, two NUMA nodes, two threads a core; N = {ROUNDS}; {machine()}\n")
    print("| calculator | n | Katalyst ms | ours ms | first call ms | factor |")
    print("|---|---|---|---|---|---|")
    rows = timings()
    progress("")
    for t in rows:
        peer = "" if t.katalyst_ms is None else f"{t.katalyst_ms}"
        factor = "" if t.katalyst_ms is None else f"{t.katalyst_ms / t.median_ms:.0f}"
        print(f"| {t.calculator} | {t.cpus} | {peer} | {t.median_ms:.3f} | {t.first_ms:.3f} | {factor} |")


if __name__ == "__main__":
    main()
