"""A pod's profile holds the targets of its service, and whether its idle resources may be lent.

Facts: docs/facts/service-profiles.md#what-nodes-do-with-descriptors.
"""

from dataclasses import dataclass

from shared.contracts.cluster.profiles import NO_TARGETS, IndicatorTargets


@dataclass(frozen=True, slots=True)
class PodProfile:
    """What central publishes about one pod."""

    service: str
    """Namespace and name of the ServiceProfileDescriptor."""
    targets: IndicatorTargets = NO_TARGETS
    kept_for: str = ""
    """Why nothing is lent of what it asked for: baseline, poor, indicator; "" where its idle part is."""
