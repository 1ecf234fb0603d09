"""Conditions name what an operator should know about qrm; only a change is logged."""

import structlog

from shared.contracts.allocation import Condition

log = structlog.get_logger()


READ_IN_PART = "PodReadInPart"
HARMLESS = (
    "PodUnplaced",
    "PodPlacedOtherwise",
    READ_IN_PART,
    "StaticCpuManager",
    "Observing",
    "KernelLacks",
    "SettingUnheeded",
    "ClassLimitsLifted",
    "BandwidthNotSteered",
    "WritePending",
)
"""Conditions with which qrm is healthy: pods that cannot be served as they ask, CPUs that are kubelet's, a node that
only observes, settings for which this machine has no means, a class that shares its group with other pods, and groups
that are still being made."""


class Conditions:
    """The conditions that hold now; as text, those that make qrm unhealthy."""

    def __init__(self) -> None:
        self._messages: dict[str, str] = {}

    def set(self, kind: str, message: str) -> None:
        """Let a condition hold with this message; an empty message takes it away."""
        if message and self._messages.get(kind) != message:
            log.warning("condition.raised", condition=kind, why=message)
        if message:
            self._messages[kind] = message
        elif self._messages.pop(kind, None) is not None:
            log.info("condition.cleared", condition=kind)

    def all(self) -> tuple[Condition, ...]:
        """The conditions by kind, ascending."""
        return tuple(Condition(type=kind, message=message) for kind, message in sorted(self._messages.items()))

    def __str__(self) -> str:
        return "; ".join(f"{c.type}: {c.message}" for c in self.all() if c.type not in HARMLESS)
