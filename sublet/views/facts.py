"""The services' answers about the node, parsed into the contracts' types."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from pydantic import ValidationError

from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation
from shared.contracts.envelope import MessagePart
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Cpu, Topology
from sublet.views.answer_shapes import well_shaped

P = TypeVar("P", bound=MessagePart)

Answers = Mapping[str, Mapping[str, Any] | None]


@dataclass(frozen=True)
class NodeFacts:
    """One node, as its services tell it. What nobody told is None."""

    node: str
    answers: Answers
    sample: NodeSample | None
    allocation: Allocation | None
    advice: PoolAdvice | None
    """The advice that the allocation rests on, as qrm holds it; else the advisor's newest."""
    healths: tuple[ServiceHealth, ...]
    """Of the node's services as the reporter folded them, and of central as it sees itself."""

    @property
    def silent(self) -> tuple[str, ...]:
        """The services that did not answer."""
        return tuple(name for name, answer in self.answers.items() if answer is None)

    @property
    def observes(self) -> bool:
        """Whether the node only observes, as its reporter tells."""
        return bool(self.answered("reporter", "mode", None) == "observe")

    @cached_property
    def topology(self) -> Topology | None:
        """The CPUs that qrm may use, with socket, NUMA node, core and L3 cache; None where it does not tell."""
        try:
            return Topology.of(_cpu(*row) for row in self.answered("qrm", "topology", []))
        except (TypeError, ValueError):
            return None

    @cached_property
    def online(self) -> CpuSet | None:
        """The CPUs that the kernel runs tasks on, as sampled."""
        return None if self.sample is None else CpuSet.parse(self.sample.node_reading.online_cpus)

    @cached_property
    def offline(self) -> CpuSet:
        """The CPUs that are there but switched off, as qrm tells; none where it does not."""
        try:
            return CpuSet.parse(str(self.answered("qrm", "offline_cpus", "")))
        except ValueError:
            return CpuSet()

    @cached_property
    def numas(self) -> dict[int, CpuSet]:
        """The machine's CPUs by NUMA node; all in one where the sample does not tell."""
        if self.sample is None:
            return {}
        numas = {numa.numa: CpuSet.parse(numa.cpus) for numa in self.sample.numas if numa.cpus}
        return numas or {0: CpuSet.parse(self.sample.node_reading.online_cpus)}

    @cached_property
    def cpus(self) -> CpuSet:
        """Every CPU that anybody tells of, online or not."""
        known = self.offline | (self.topology.all if self.topology else CpuSet())
        for cpus in (self.online or CpuSet(), *self.numas.values()):
            known |= cpus
        for pool in self.allocation.pools if self.allocation else ():
            known |= CpuSet.parse(pool.cpus)
        return known

    def answered(self, service: str, key: str, default: Any) -> Any:
        """One entry of a service's answer; the default where it is missing."""
        value = (self.answers.get(service) or {}).get(key)
        return default if value is None else value


def _cpu(cpu: int, numa: int, socket: int, core: int, l3: int) -> Cpu:
    """One row of qrm's topology.

    Raises:
        TypeError: more or fewer than five numbers, or something else than a number.
    """
    if not all(type(value) is int for value in (cpu, numa, socket, core, l3)):
        raise TypeError(f"topology row {(cpu, numa, socket, core, l3)}: want whole numbers")
    return Cpu(cpu, numa, socket, core, l3)


def read(node: str, answers: Answers) -> NodeFacts:
    """Read the answers; a part that cannot be read counts as not told."""
    answers = {name: answer and well_shaped(name, answer) for name, answer in answers.items()}

    def one(service: str, key: str, model: type[P]) -> P | None:
        return _read(model, (answers.get(service) or {}).get(key))

    rows = [*((answers.get("reporter") or {}).get("services") or ()), (answers.get("central") or {}).get("health")]
    return NodeFacts(
        node=node,
        answers=answers,
        sample=one("metrics", "sample", NodeSample),
        allocation=one("qrm", "allocation", Allocation),
        advice=one("qrm", "advice", PoolAdvice) or one("advisor", "advice", PoolAdvice),
        healths=tuple(health for row in rows if (health := _read(ServiceHealth, row)) is not None),
    )


def _read(model: type[P], value: Any) -> P | None:
    try:
        return None if value is None else model.model_validate(value)
    except ValidationError:
        return None
