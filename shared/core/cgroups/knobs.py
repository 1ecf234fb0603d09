"""The cgroup settings that Sublet uses, in one unit each, and their spelling on cgroup v1 and v2.

All unit conversion is here. Facts: docs/facts/linux-cgroups.md#cpu-weight, docs/facts/linux-cgroups.md#cpu-quota,
docs/facts/linux-cgroups.md#memory-limits.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Version = Literal[1, 2]

UNLIMITED = -1
PERIOD_US = 100_000
MIN_QUOTA_US = 1_000  # both versions refuse less
# The kernel's own bounds on v1 (docs/facts/linux-cgroups.md#cpu-weight).
MIN_SHARES, MAX_SHARES = 2, 262_144
SHARES_PER_CORE = 1_024
_V1_UNLIMITED_BYTES = 1 << 60  # v1 prints "no limit" as the largest page-aligned number; nothing real is above this


class Knob(StrEnum):
    """One setting; the comment gives the unit of its value."""

    CPUS = "cpuset.cpus"  # CPU list
    MEMS = "cpuset.mems"  # list of memory nodes
    MEMORY_MIGRATE = "cpuset.memory_migrate"  # 1: pages follow a change of nodes; v1 only, v2 always moves them
    CPU_IDLE = "cpu.idle"  # 1: runs only where nobody else wants to
    CPU_SHARES = "cpu.shares"  # v1 shares: 1024 for each core asked for
    CPU_QUOTA = "cpu.quota"  # milli-cores, UNLIMITED for none
    CPU_BURST = "cpu.burst"  # milli-cores that may be saved up for a burst, at most the quota; 0 for none
    MEMORY_MAX = "memory.max"  # bytes, UNLIMITED for none
    MEMORY_HIGH = "memory.high"  # bytes, UNLIMITED for none; v2 only
    MEMORY_MIN = "memory.min"  # bytes that are never reclaimed; v2 only
    MEMORY_LOW = "memory.low"  # bytes that are reclaimed last; v2 only
    # Of kernels with Alibaba's patches (docs/facts/koordinator-isolation.md#memory-qos).
    WMARK_RATIO = "memory.wmark_ratio"  # percent of the limit above which the kernel reclaims, 0 for never
    WMARK_SCALE = "memory.wmark_scale_factor"  # permill of the limit between the two marks
    WMARK_MIN_ADJ = "memory.wmark_min_adj"  # percent by which the machine's least watermark differs here
    GROUP_IDENTITY = "cpu.bvt_warp_ns"  # -1 to 2: whose turn it is
    NET_CLASS = "net_cls.classid"  # id of packets, 65536 a + b for the tc class a:b, 0 for none; v1 only
    # One value a disk; 0: none. Their files are in `shared.core.cgroups.block_io`.
    IO_READ_BPS = "io.read_bps"  # bytes by second
    IO_WRITE_BPS = "io.write_bps"  # bytes by second
    IO_READ_IOPS = "io.read_iops"  # operations by second
    IO_WRITE_IOPS = "io.write_iops"  # operations by second
    IO_WEIGHT = "io.weight"  # 1 to 100, where a group without has 100
    # Of whole disks: a number, and two lines (docs/facts/linux-disks.md#iocost).
    WBT = "wbt_lat_usec"  # microseconds, 0 for none
    IO_COST_MODEL = "io.cost.model"
    IO_COST_QOS = "io.cost.qos"


@dataclass(frozen=True, slots=True)
class Write:
    """One setting of one cgroup: CPU lists are text, everything else a number in the knob's unit."""

    group: str
    knob: Knob
    value: str | int


V1_FILES: dict[Knob, tuple[str, str]] = {
    Knob.CPUS: ("cpuset", "cpuset.cpus"),
    Knob.MEMS: ("cpuset", "cpuset.mems"),
    Knob.MEMORY_MIGRATE: ("cpuset", "cpuset.memory_migrate"),
    Knob.CPU_IDLE: ("cpu", "cpu.idle"),
    Knob.CPU_SHARES: ("cpu", "cpu.shares"),
    Knob.CPU_QUOTA: ("cpu", "cpu.cfs_quota_us"),
    Knob.CPU_BURST: ("cpu", "cpu.cfs_burst_us"),
    Knob.MEMORY_MAX: ("memory", "memory.limit_in_bytes"),
    Knob.WMARK_RATIO: ("memory", "memory.wmark_ratio"),
    Knob.WMARK_SCALE: ("memory", "memory.wmark_scale_factor"),
    Knob.WMARK_MIN_ADJ: ("memory", "memory.wmark_min_adj"),
    Knob.GROUP_IDENTITY: ("cpu", "cpu.bvt_warp_ns"),
    Knob.NET_CLASS: ("net_cls", "net_cls.classid"),
}
V2_FILES: dict[Knob, str] = {
    Knob.CPUS: "cpuset.cpus",
    Knob.MEMS: "cpuset.mems",
    Knob.CPU_IDLE: "cpu.idle",
    Knob.CPU_SHARES: "cpu.weight",
    Knob.CPU_QUOTA: "cpu.max",
    Knob.CPU_BURST: "cpu.max.burst",
    Knob.MEMORY_MAX: "memory.max",
    Knob.MEMORY_HIGH: "memory.high",
    Knob.MEMORY_MIN: "memory.min",
    Knob.MEMORY_LOW: "memory.low",
    Knob.WMARK_RATIO: "memory.wmark_ratio",
    Knob.WMARK_SCALE: "memory.wmark_scale_factor",
    Knob.WMARK_MIN_ADJ: "memory.wmark_min_adj",
    Knob.GROUP_IDENTITY: "cpu.bvt_warp_ns",
}
_IN_PAGES = (Knob.MEMORY_MAX, Knob.MEMORY_HIGH, Knob.MEMORY_MIN, Knob.MEMORY_LOW)


def shares_of_millis(cpu_millis: int) -> int:
    """CPU shares for a request, as kubelet computes them."""
    return min(MAX_SHARES, max(MIN_SHARES, cpu_millis * SHARES_PER_CORE // 1000))


def weight_of_shares(shares: int) -> int:
    """cgroup v2 weight of v1 shares: 2..262144 onto 1..10000, linear (kubelet's formula)."""
    return 1 + (min(MAX_SHARES, max(MIN_SHARES, shares)) - 2) * 9999 // 262142


def to_file(knob: Knob, value: str | int, version: Version) -> str:
    """The text to write for a value."""
    if knob in (Knob.CPUS, Knob.MEMS):
        return str(value)
    number = int(value)
    if knob is Knob.CPU_QUOTA:
        quota_us = UNLIMITED if number < 0 else max(MIN_QUOTA_US, number * PERIOD_US // 1000)
        if version == 1:
            return str(quota_us)
        # With the period: a container runtime may have chosen another one.
        return f"{'max' if number < 0 else quota_us} {PERIOD_US}"
    # Microseconds for each period, like the quota.
    if knob is Knob.CPU_BURST:
        return str(number * PERIOD_US // 1000)
    if knob is Knob.CPU_SHARES and version == 2:
        return str(weight_of_shares(number))
    if knob in _IN_PAGES and version == 2 and number < 0:
        return "max"
    return str(number)


def from_file(knob: Knob, text: str, version: Version) -> str | int:
    """The value behind a file's text, in the knob's unit (v2 weights are given back as weights, see `same`)."""
    text = text.strip()
    if knob in (Knob.CPUS, Knob.MEMS):
        return text
    if knob is Knob.CPU_QUOTA:
        quota, _, period = text.partition(" ")
        if quota in ("max", "-1"):
            return UNLIMITED
        # On v1 the period is in a separate file, and the default is assumed.
        return int(quota) * 1000 // int(period or PERIOD_US)
    if text == "max":
        return UNLIMITED
    number = int(text)
    if knob is Knob.CPU_BURST:
        return number * 1000 // PERIOD_US
    if version == 1 and knob is Knob.MEMORY_MAX and number >= _V1_UNLIMITED_BYTES:
        return UNLIMITED
    return number


def quota_us(text: str) -> int | None:
    """The microseconds a period of a quota's file, on either version; None where there is no quota."""
    quota = text.split(maxsplit=1)[0]
    return None if quota in ("max", "-1") else int(quota)


def same(knob: Knob, wanted: str | int, text: str, version: Version, page_bytes: int = 4096) -> bool:
    """Whether a file's text already says what is wanted; the kernel rounds memory limits down to whole pages."""
    if knob in _IN_PAGES:
        there, number = from_file(knob, text, version), int(wanted)
        return there == (number if number < 0 else number - number % page_bytes)
    # Compared after the rounding that the file's unit does to both.
    if knob is Knob.CPU_QUOTA:
        there = from_file(knob, text, version)
        return there == from_file(knob, to_file(knob, wanted, version), version)
    return text.strip() == to_file(knob, wanted, version)
