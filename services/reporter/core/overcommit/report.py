"""Say what over-commitment the node can bear, by its samples."""

from collections.abc import Mapping

from services.reporter.core.field import SaidRatios
from services.reporter.core.node_capacity import NodeCapacity
from services.reporter.core.overcommit.bearing import Bearing, BearingRules
from services.reporter.core.overcommit.usage import demands
from shared.contracts.kube.overcommit import Resource
from shared.contracts.sample import NodeSample

Rules = Mapping[Resource, BearingRules]
"""Rules by resource; empty: nothing is reported."""


class OvercommitReport:
    """Reports nothing without rules. Without fresh samples the last report is removed, and central waits a while."""

    def __init__(self, rules: Rules) -> None:
        self._read: str | None = None
        self.said: SaidRatios = ()
        """The ratio of each resource; nothing while it is not known."""
        self._rules, self._by_resource = rules, _bearings(rules)

    def reconfigure(self, rules: Rules) -> None:
        """Take new rules; others than before begin a new window."""
        if rules != self._rules:
            self.said, self._rules, self._by_resource = (), rules, _bearings(rules)

    def follow(self, sample: NodeSample | None, capacity: NodeCapacity | None, now_s: float) -> None:
        """Follow the newest sample, each once; None: there is none that is new enough."""
        if sample is None or not self._rules:
            self.said = ()
            return
        if sample.ref == self._read or capacity is None or (found := demands(sample)) is None:
            return
        self._read = sample.ref
        allocatable: dict[Resource, int] = {
            "cpu": capacity.cpu_millis - capacity.reserved_cpu_millis,
            "memory": capacity.memory_bytes - capacity.reserved_memory_bytes,
        }
        ratios = [
            (name, bearing.next(found[name], allocatable[name], now_s)) for name, bearing in self._by_resource.items()
        ]
        self.said = tuple((name, ratio) for name, ratio in ratios if ratio is not None)


def _bearings(rules: Rules) -> dict[Resource, Bearing]:
    return {name: Bearing(rule) for name, rule in rules.items()}
