"""The advisor's ports say what it needs of the world beside bus and clock."""

from dataclasses import dataclass

from shared.core.cpus.topology import Topology
from shared.ports import Past


@dataclass(frozen=True, slots=True)
class AdvisorPorts:
    """What `main` reads of the machine once, before the advisor starts, and the file of its past."""

    topology: Topology
    """CPUs by core and NUMA node; which of them are online says each sample."""
    past: Past | None = None
    """Where what the policy has learned is kept for the next life; None: nowhere."""
