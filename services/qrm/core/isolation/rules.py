"""Isolation rules are the node's settings, and values are what groups shall have by them, in the unit of each knob."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.qrm.core.devices.disk_lines import NO_DISK_RULES, DiskRules
from services.qrm.core.isolation.block_io import BlockLimits
from services.qrm.core.resctrl.shares import NO_RESCTRL, ResctrlRules
from shared.contracts.pod import QosClass
from shared.core.cgroups.knobs import UNLIMITED, Knob

Values = Mapping[tuple[str, Knob], int]
"""What groups must have, by group and knob."""

NEUTRAL: Mapping[Knob, int] = {
    Knob.CPU_BURST: 0,
    Knob.GROUP_IDENTITY: 0,
    Knob.MEMORY_MIN: 0,
    Knob.MEMORY_LOW: 0,
    Knob.MEMORY_HIGH: UNLIMITED,
    Knob.WMARK_RATIO: 0,
    Knob.WMARK_SCALE: 50,
    Knob.WMARK_MIN_ADJ: 0,
    Knob.NET_CLASS: 0,
}
"""The kernel's default for a new group, for every knob of these rules."""


@dataclass(frozen=True, slots=True)
class MemoryQos:
    """How the memory of one class, or one pod, is protected, throttled and reclaimed early.

    Facts: docs/facts/koordinator-isolation.md#memory-qos.
    """

    min_percent: int = 0
    """Part of the request that is never reclaimed."""
    low_percent: int = 0
    """Part of the request that is reclaimed last."""
    throttle_percent: int = 0
    """How far from request to limit a container is slowed down; 0: never."""
    wmark_ratio: int = 95
    """Percent of the limit above which the kernel reclaims in the background; 0: never."""
    wmark_scale_permill: int = 20
    """How far below that it stops."""
    wmark_min_adj: int = 0
    """By how many percent the machine's least watermark is lower (below 0) or higher for this group."""


@dataclass(frozen=True, slots=True)
class NodeRules:
    """The node's settings; empty by default."""

    burst_percent: float = 0.0
    """How much of its quota a container may save up whose pod does not say it."""
    memory: Mapping[QosClass, MemoryQos] = field(default_factory=dict)
    """Memory QoS by class; none: it is off."""
    identities: Mapping[QosClass, int] = field(default_factory=dict)
    """Group identity by class; none: it is off."""
    machine_bytes: int = 0
    """Memory of the machine, which a container without a limit may use."""
    resctrl: ResctrlRules = NO_RESCTRL
    """Part of the caches and of the memory bandwidth by class."""
    disks: tuple[BlockLimits, ...] = ()
    """Limits of the reclaimed class by disk; none: they are off."""
    tuning: DiskRules = NO_DISK_RULES
    """Settings of whole disks; empty by default."""
    net_classes: Mapping[QosClass, int] = field(default_factory=dict)
    """Ids of packets by class; none: they are off."""


NO_ISOLATION = NodeRules()
