"""A pod's profile says what its service is judged by, and whether what it leaves idle may be lent.

Facts: docs/facts/service-profiles.md#what-nodes-do-with-descriptors.
"""

from dataclasses import dataclass

from shared.contracts.cluster.profiles import NO_TARGETS, IndicatorTargets


@dataclass(frozen=True, slots=True)
class PodProfile:
    """What central tells of one pod."""

    service: str
    """Namespace and name of the ServiceProfileDescriptor."""
    targets: IndicatorTargets = NO_TARGETS
    kept_for: str = ""
    """Why nothing is lent of what it asked for: baseline, poor, indicator; "" where its idle part is."""
