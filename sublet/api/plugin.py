"""An eviction plugin of the evictor: what it is, and what it sees.

docs/writing-an-eviction-plugin.md shows how to write one.
"""

from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from shared.contracts.allocation import Allocation
from shared.contracts.envelope import Reason
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import (
    ContainerReading,
    NodeReading,
    NodeSample,
    NumaReading,
    PodReading,
    PoolReading,
)
from shared.core.cpus.cpuset import CpuSet

__all__ = (
    "Allocation",
    "Candidate",
    "Container",
    "ContainerReading",
    "CpuSet",
    "NodeReading",
    "NodeSample",
    "NumaReading",
    "Plugin",
    "PluginSettings",
    "Pod",
    "PodReading",
    "PoolReading",
    "Pressure",
    "Reason",
    "Silence",
    "View",
)
