"""Isolation rules are the node's settings, and values are what groups shall have by them, in the unit of each knob."""

from collections.abc import Mapping
from dataclasses import dataclass

from shared.core.cgroups.knobs import Knob

Values = Mapping[tuple[str, Knob], int]
"""What groups shall have, by group and knob."""

NEUTRAL: Mapping[Knob, int] = {Knob.CPU_BURST: 0}
"""What the kernel gives a new group, for every knob of these rules."""


@dataclass(frozen=True, slots=True)
class GroupRules:
    """What the node's settings say; nothing of it by default."""

    burst_percent: float = 0.0
    """How much of its quota a container may save up whose pod does not say it."""


NO_ISOLATION = GroupRules()
