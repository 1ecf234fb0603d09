"""Everything that isolation gives to groups, and the order in which the values are written."""

from collections.abc import Sequence

from services.qrm.core.isolation.burst import burst_values
from services.qrm.core.isolation.rules import GroupRules, Values
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import Layout


def wanted_values(pods: Sequence[Pod], layout: Layout, rules: GroupRules) -> Values:
    """What the groups of these pods, and those above them, shall have."""
    return burst_values(pods, layout, rules.burst_percent)
