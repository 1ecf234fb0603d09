"""Disk lines are the kernel settings of one disk: its write-back throttling, and its io.cost lines.

Facts: docs/facts/katalyst-isolation.md#disks, docs/facts/linux-disks.md#write-back-throttling.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Skipped = Literal["cgroup_v1", "no_settings", "wbt_active"]
Control = Literal["auto", "user"]

LEAVE_WBT = -1
WBT_US: Mapping[str, int] = {"hdd": 75_000, "virtio": 75_000, "ssd": 2_000, "nvme": 2_000}
"""Write latency that the kernel maintains by throttling writers, by class of disk; other classes stay unchanged."""
_KINDS = (
    (re.compile(r"nvme[0-9]+n[0-9]+"), "nvme"),
    (re.compile(r"vd[a-z]+"), "virtio"),
    (re.compile(r"(sd|hd|xvd)[a-z]+"), ""),
)
MOST_LINES, MOST_WORDS, MOST_LETTERS = 1024, 16, 64
_UNSAID: Mapping[str, str] = {"enable": "0", "ctrl": "auto"}
_WORD = re.compile(r"([a-z]{1,16})=([a-z0-9.]{1,32})")


@dataclass(frozen=True, slots=True)
class CostQos:
    """Latencies that io.cost keeps, and how far it may slow down or speed up all work for that."""

    enable: bool = True
    ctrl: Control = "auto"
    rpct: float = 0.0
    rlat_us: int = 0
    wpct: float = 0.0
    wlat_us: int = 0
    min: float = 1.0
    max: float = 10_000.0


@dataclass(frozen=True, slots=True)
class CostModel:
    """Capacity of a disk: bytes per second, and sequential and random operations per second."""

    ctrl: Control = "auto"
    rbps: int = 0
    rseqiops: int = 0
    rrandiops: int = 0
    wbps: int = 0
    wseqiops: int = 0
    wrandiops: int = 0


@dataclass(frozen=True, slots=True)
class DiskClassRules:
    """Settings of one class of disks; None: unset."""

    wbt_us: int | None = None
    qos: CostQos | None = None
    model: CostModel | None = None


@dataclass(frozen=True, slots=True)
class DiskRules:
    """The node's settings for disks; empty by default."""

    wbt: bool = False
    cost: bool = False
    check_wbt: bool = True
    """Whether io.cost has to wait until write-back throttling is off: both would slow down the same writers."""
    classes: Mapping[str, DiskClassRules] = field(default_factory=dict)

    def of(self, kind: str) -> DiskClassRules:
        """Return the rules of a class of disks."""
        return self.classes.get(kind, NOTHING_SAID)


NOTHING_SAID = DiskClassRules()
NO_DISK_RULES = DiskRules()


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk of the node; `wbt_us` None: it is not known."""

    number: str
    kind: str
    wbt_us: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class DiskLines:
    """What must be written; None: nothing, and `skipped` says why io.cost is left alone."""

    wbt_us: int | None = None
    qos_line: str | None = None
    model_line: str | None = None
    skipped: Skipped | None = None


def disk_kind(name: str, *, rotates: bool | None) -> str:
    """The class of a disk by its name and whether it rotates; `other` where either does not say."""
    for pattern, kind in _KINDS:
        if pattern.fullmatch(name):
            return kind or {True: "hdd", False: "ssd", None: "other"}[rotates]
    return "other"


def wanted_wbt(kind: str, rules: DiskRules) -> int | None:
    """Return the throttling that a class of disks must have; None: leave it unchanged."""
    said = rules.of(kind).wbt_us
    wanted = WBT_US.get(kind) if said is None else said
    return None if not rules.wbt or wanted == LEAVE_WBT else wanted


def disk_lines(disk: Disk, rules: DiskRules, *, cgroup_v2: bool) -> DiskLines:
    """Return what must be written for one disk."""
    wanted, own = wanted_wbt(disk.kind, rules), rules.of(disk.kind)
    wbt_us = None if wanted == disk.wbt_us else wanted
    if not rules.cost:
        return DiskLines(wbt_us)
    if not cgroup_v2:
        return DiskLines(wbt_us, skipped="cgroup_v1")
    if own.qos is None and own.model is None:
        return DiskLines(wbt_us, skipped="no_settings")
    # Not known is not off.
    throttled = (disk.wbt_us if wbt_us is None else wbt_us) != 0
    if throttled and rules.check_wbt and own.qos is not None and own.qos.enable:
        return DiskLines(wbt_us, skipped="wbt_active")
    qos_line = None if own.qos is None else qos_text(disk.number, own.qos)
    return DiskLines(wbt_us, qos_line, None if own.model is None else model_text(disk.number, own.model))


def qos_text(number: str, qos: CostQos) -> str:
    """The line of `io.cost.qos`."""
    if not qos.enable:
        return f"{number} enable=0"
    return (
        f"{number} enable=1 ctrl={qos.ctrl} rpct={qos.rpct:.2f} rlat={qos.rlat_us} wpct={qos.wpct:.2f} "
        f"wlat={qos.wlat_us} min={qos.min:.2f} max={qos.max:.2f}"
    )


def model_text(number: str, model: CostModel) -> str:
    """The line of `io.cost.model`."""
    if model.ctrl == "auto":
        return f"{number} ctrl=auto"
    return (
        f"{number} ctrl=user model=linear rbps={model.rbps} rseqiops={model.rseqiops} rrandiops={model.rrandiops} "
        f"wbps={model.wbps} wseqiops={model.wseqiops} wrandiops={model.wrandiops}"
    )


def read_lines(text: str) -> dict[str, Mapping[str, str]]:
    """Parse a file of io.cost by device number; malformed lines are skipped."""
    found: dict[str, Mapping[str, str]] = {}
    for line in text.splitlines()[:MOST_LINES]:
        number, *words = line.split()[:MOST_WORDS] or [""]
        read = [match for word in words if len(word) <= MOST_LETTERS and (match := _WORD.fullmatch(word))]
        found[number] = {match[1]: match[2] for match in read}
    return found


def in_force(line: str, now: Mapping[str, str] | None) -> bool:
    """Return whether the kernel has what a line says; a disk without an entry is off, and uses the kernel's own
    model."""
    wanted = dict(word.split("=") for word in line.split()[1:])
    if wanted.keys() - {"enable", "ctrl"}:
        # With figures the kernel says `user`, whatever was written (docs/facts/linux-disks.md#iocost).
        del wanted["ctrl"]
    return wanted.items() <= (_UNSAID if now is None else now).items()


def line_before(number: str, before: Mapping[str, str] | None, *, qos: bool) -> str:
    """The line that brings back what a disk had; figures of the kernel's own are not repeated, for they would stick."""
    if before is None:
        return f"{number} enable=0 ctrl=auto" if qos else f"{number} ctrl=auto"
    own = before.get("ctrl") != "user"
    kept = {key: value for key, value in before.items() if not own or key in ("enable", "ctrl")}
    return " ".join((number, *(f"{key}={value}" for key, value in kept.items())))
