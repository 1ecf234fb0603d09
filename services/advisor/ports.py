"""Ports of the advisor: what it needs besides bus and clock."""

from collections.abc import Callable
from dataclasses import dataclass

from shared.core.cpus.topology import Topology
from shared.ports import Past


@dataclass(frozen=True, slots=True)
class AdvisorPorts:
    """What `main` gives the advisor: the topology, read before it starts, a policy's past, and waits for a CPU."""

    topology: Topology
    """CPUs by core and NUMA node; each sample says which of them are online."""
    past: Past | None = None
    """Where what the policy has learned is kept for the next life; None: nowhere."""
    waited_s: Callable[[], float] = float
    """Seconds that the calling thread has been ready to run without a CPU, since it began; 0 where nobody says. A round
    that had to wait for others is not the policy's slowness."""
