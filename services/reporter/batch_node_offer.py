"""Offer Koordinator's batch resources over time: a fall at once, a rise smoothly, and nothing on old figures.

The time is looked at with every tick of the reporter: an offer ends by itself, also where nothing arrives any more.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from services.reporter.core.batch_demand import BatchOffer, ColocationStrategy, batch_offer
from services.reporter.core.batch_resources import degraded
from services.reporter.core.field import Offered
from services.reporter.core.node_capacity import NodeCapacity, machine_capacity, node_capacity
from services.reporter.core.node_strategy import NodeOverride, node_override
from services.reporter.core.offer_smoother import OfferSmoother
from services.reporter.settings import ReporterSettings, rise_rules
from shared.contracts.allocation import Allocation
from shared.contracts.sample import NodeSample


@dataclass(frozen=True, slots=True)
class BatchInput:
    """What is known at one moment; `node`: the Node as last read, None on a host that has none."""

    allocation: Allocation | None
    sample: NodeSample | None
    sample_age_s: float | None
    node: Mapping[str, Any] | None
    in_a_cluster: bool

    @property
    def capacity(self) -> NodeCapacity | None:
        """What the node has; None as long as that is not known."""
        if self.in_a_cluster:
            return None if self.node is None else node_capacity(self.node)
        return None if self.sample is None else machine_capacity(self.sample.node_reading)

    @property
    def override(self) -> NodeOverride:
        """What the Node says of its own colocation; nothing where there is no Node."""
        return NodeOverride() if self.node is None else node_override(self.node)


class BatchNodeOffer:
    """Both batch resources as they are reported; nothing unless the settings say so."""

    def __init__(self, settings: ReporterSettings) -> None:
        self._settings = settings
        cpu, memory = rise_rules(settings)
        self._cpu = OfferSmoother(cpu, settings.rise_sample_s)
        self._memory = OfferSmoother(memory, settings.rise_sample_s)
        self._offered: Offered | None = None
        self._found: BatchOffer | None = None
        self._capacity: NodeCapacity | None = None
        self._strategy = settings.batch.strategy
        self._found_at_s = 0.0
        self.unread: tuple[str, ...] = ()
        """What the Node says of itself and cannot be followed; nothing while nothing is to be offered."""

    def reconfigure(self, settings: ReporterSettings) -> None:
        """Take new settings."""
        self._settings = settings
        cpu, memory = rise_rules(settings)
        self._cpu.set_rules(cpu, settings.rise_sample_s)
        self._memory.set_rules(memory, settings.rise_sample_s)

    def smoothed(self, seen: BatchInput, now_s: float) -> Offered | None:
        """What is reported now; None where nothing is offered, which is not the same as an offer of 0."""
        batch, node = self._settings.batch, seen.override
        degrade_after_s = node.degrade_after_s or batch.degrade_after_s
        self.unread = node.unread if batch.enabled else ()
        if not batch.enabled or node.off or degraded(seen.sample_age_s, degrade_after_s):
            self._restart()
        elif seen.sample_age_s is not None and seen.sample_age_s <= self._settings.max_sample_age_s:
            self._follow(seen, replace(batch.strategy, **node.batch), now_s)
        # Samples that come and say too little are no better than none.
        if self._offered is not None and degraded(now_s - self._found_at_s, degrade_after_s):
            self._restart()
        if self._capacity is not None:
            self.unread += self._capacity.unread
        return self._offered

    def state(self) -> dict[str, Any] | None:
        """What is reported and the terms that it is made of, for `explain`; None where nothing is offered."""
        if self._offered is None or self._found is None or self._capacity is None:
            return None
        strategy = self._strategy
        return {
            "cpu_millis": self._offered.cpu_millis,
            "memory_bytes": self._offered.memory_bytes,
            "cpu": {"policy": strategy.cpu_policy, "amount": self._found.cpu_millis, **asdict(self._found.cpu)},
            "memory": {
                "policy": strategy.memory_policy,
                "amount": self._found.memory_bytes,
                **asdict(self._found.memory),
            },
            "cpu_normalization_ratio": self._capacity.cpu_normalization_ratio,
            "unread": list(self.unread),
        }

    def _restart(self) -> None:
        """The next offer is reported as it is."""
        self._cpu.restart()
        self._memory.restart()
        self._offered = self._found = self._capacity = None

    def _follow(self, seen: BatchInput, strategy: ColocationStrategy, now_s: float) -> None:
        capacity = seen.capacity
        found = None
        if capacity is not None and seen.sample is not None:
            found = batch_offer(seen.sample, capacity, strategy)
        # One sample without a figure is no reason to take anything away: time does that.
        if found is None:
            return
        self._found, self._capacity, self._strategy, self._found_at_s = found, capacity, strategy, now_s
        cpu_millis, memory_bytes = found.cpu_millis, found.memory_bytes
        # Whatever the formula finds idle: what reclaimed pods are not given here cannot be sold.
        if seen.allocation is not None:
            cpu_millis = min(cpu_millis, seen.allocation.reclaimed_cpu_millis)
            memory_bytes = min(memory_bytes, seen.allocation.reclaimed_memory_bytes)
        self._offered = Offered(
            self._cpu.smoothed(cpu_millis, now_s, may_rise=True),
            self._memory.smoothed(memory_bytes, now_s, may_rise=True),
        )
