"""Ports of the advisor: what it needs besides bus and clock."""

from dataclasses import dataclass

from shared.core.cpus.topology import Topology
from shared.ports import Past


@dataclass(frozen=True, slots=True)
class AdvisorPorts:
    """The topology, which `main` reads once before the advisor starts, and the file of the policy's past."""

    topology: Topology
    """CPUs by core and NUMA node; each sample says which of them are online."""
    past: Past | None = None
    """Where what the policy has learned is kept for the next life; None: nowhere."""
