"""Reports an offer of CPU and memory over time: a fall at once, a rise smoothly, and nothing from stale figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.reporter.core.field import Offered
from services.reporter.core.node_capacity import NodeCapacity, machine_capacity, node_capacity
from services.reporter.core.node_strategy import NodeOverride, node_override
from services.reporter.core.offer_smoother import OfferSmoother
from services.reporter.settings import ReporterSettings, rise_rules
from shared.contracts.allocation import Allocation
from shared.contracts.sample import NodeSample


@dataclass(frozen=True, slots=True)
class ColocationInput:
    """The inputs at one moment; `node` is the Node as last read, None on a host without one."""

    allocation: Allocation | None
    sample: NodeSample | None
    sample_age_s: float | None
    node: Mapping[str, Any] | None
    in_a_cluster: bool

    @property
    def capacity(self) -> NodeCapacity | None:
        """Return the node's capacity; None while it is unknown."""
        if self.in_a_cluster:
            return None if self.node is None else node_capacity(self.node)
        return None if self.sample is None else machine_capacity(self.sample.node_reading)

    @property
    def override(self) -> NodeOverride:
        """Return what the Node declares about its own colocation; empty if there is no Node."""
        return NodeOverride() if self.node is None else node_override(self.node)


class OfferOverTime:
    """Both amounts as they are reported; none before the first, and none once it was ended."""

    def __init__(self, settings: ReporterSettings) -> None:
        cpu, memory = rise_rules(settings)
        self._cpu = OfferSmoother(cpu, settings.rise_sample_s)
        self._memory = OfferSmoother(memory, settings.rise_sample_s)
        self._found_at_s = 0.0
        self.reported: Offered | None = None

    def reconfigure(self, settings: ReporterSettings) -> None:
        """Take new settings."""
        cpu, memory = rise_rules(settings)
        self._cpu.set_rules(cpu, settings.rise_sample_s)
        self._memory.set_rules(memory, settings.rise_sample_s)

    def report(self, found: Offered, now_s: float) -> None:
        """Follow what was found."""
        self._found_at_s = now_s
        self.reported = Offered(
            self._cpu.smoothed(found.cpu_millis, now_s, may_rise=True),
            self._memory.smoothed(found.memory_bytes, now_s, may_rise=True),
        )

    def unheard_s(self, now_s: float) -> float:
        """Since when nothing was found."""
        return now_s - self._found_at_s

    def end(self) -> None:
        """Report nothing; the next offer is reported without smoothing."""
        self._cpu.restart()
        self._memory.restart()
        self.reported = None
