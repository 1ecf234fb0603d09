"""Block I/O limits bound what the pods of a class read from a disk, and write to it, and how much they weigh there.

Facts: docs/facts/koordinator-isolation.md#disks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.contracts.pod import Pod
from shared.core.cgroups.block_io import FULL_WEIGHT
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import Layout


@dataclass(frozen=True, slots=True)
class BlockLimits:
    """The limits of one disk, by the name of its device; 0: none."""

    device: str
    read_bps: int = 0
    write_bps: int = 0
    read_iops: int = 0
    write_iops: int = 0
    weight_percent: int = FULL_WEIGHT

    def values(self) -> Mapping[Knob, int]:
        """The knobs that are to be set."""
        found = {
            Knob.IO_READ_BPS: self.read_bps,
            Knob.IO_WRITE_BPS: self.write_bps,
            Knob.IO_READ_IOPS: self.read_iops,
            Knob.IO_WRITE_IOPS: self.write_iops,
            Knob.IO_WEIGHT: 0 if self.weight_percent == FULL_WEIGHT else self.weight_percent,
        }
        return {knob: value for knob, value in found.items() if value}


def limited_groups(pods: Sequence[Pod], layout: Layout) -> list[str]:
    """Return the groups that have the limits of the reclaimed class: its own group, if it holds only reclaimed pods.

    Otherwise each of its pods gets the limits, because a limit of the group would also affect the others.
    """
    together = layout.reclaimed_group(pods)
    if together is not None:
        return [together]
    return [layout.pod_group(pod) for pod in pods if pod.qos == "reclaimed_cores"]
