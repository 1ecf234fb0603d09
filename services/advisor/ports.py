"""The advisor's ports say what it needs of the world beside bus and clock."""

from dataclasses import dataclass

from shared.core.cpus.topology import Topology


@dataclass(frozen=True, slots=True)
class AdvisorPorts:
    """What `main` reads of the machine once, before the advisor starts."""

    topology: Topology
    """CPUs by core and NUMA node; which of them are online says each sample."""
