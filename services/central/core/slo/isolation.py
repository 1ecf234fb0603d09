"""Settings of qrm that isolate pods as Koordinator's strategies say.

Facts: docs/facts/koordinator-isolation.md#cpu-burst, docs/facts/koordinator-isolation.md#quotas-that-move,
docs/facts/koordinator-isolation.md#memory-qos, docs/facts/koordinator-isolation.md#group-identity,
docs/facts/koordinator-isolation.md#disks.
"""

import re
from collections.abc import Mapping
from typing import Any

from services.central.core.slo.keys import Strategy
from shared.contracts.pod import QosClass
from shared.core.cgroups.block_io import UNBOUNDED_IOPS

FULL_PERCENT = 100
"""Most that a mainline kernel lets a container save up, in percent of its quota."""
CLASSES: Mapping[str, QosClass] = {
    "lsrClass": "dedicated_cores",
    "lsClass": "shared_cores",
    "beClass": "reclaimed_cores",
    "systemClass": "system_cores",
}
MEMORY_SETTINGS: Mapping[str, str] = {
    "minLimitPercent": "min_percent",
    "lowLimitPercent": "low_percent",
    "throttlingPercent": "throttle_percent",
    "wmarkRatio": "wmark_ratio",
    "wmarkScalePermill": "wmark_scale_permill",
    "wmarkMinAdj": "wmark_min_adj",
}
NO_MEMORY_QOS = {"min_percent": 0, "low_percent": 0, "throttle_percent": 0, "wmark_ratio": 0, "wmark_min_adj": 0}
"""Settings of a class that is off while another one is on."""


RESCTRL_SETTINGS: Mapping[str, str] = {
    "catRangeStartPercent": "start_percent",
    "catRangeEndPercent": "end_percent",
    "mbaPercent": "bandwidth_percent",
}
WHOLE_CACHE = {"start_percent": 0, "end_percent": 100, "bandwidth_percent": 100}


DISK_SETTINGS: Mapping[str, str] = {
    "readBPS": "read_bps",
    "writeBPS": "write_bps",
    "readIOPS": "read_iops",
    "writeIOPS": "write_iops",
    "ioWeightPercent": "weight_percent",
}
MOST_DISKS = 16
OPERATIONS = ("readIOPS", "writeIOPS")
_DISK = re.compile(r"/dev/([a-zA-Z0-9][-a-zA-Z0-9_.]{0,62})\Z")


def burst(whole: Strategy, said: Strategy) -> dict[str, Any]:
    """Translate `cpu-burst-config`: `whole` includes built-in values, `said` does not."""
    # Off only if the ConfigMap itself says so, not if it is silent.
    if "policy" not in said:
        return {}
    saves = whole["policy"] in ("cpuBurstOnly", "auto")
    percent = min(FULL_PERCENT, whole["cpuBurstPercent"]) if saves else 0
    return {"qrm": {"burst_percent": percent, "quota_burst": {"enabled": moves_quotas(whole)}}}


def moves_quotas(strategy: Strategy) -> bool:
    """Return whether quotas move with this `cpu-burst-config`."""
    return strategy["policy"] in ("cfsQuotaBurstOnly", "auto")


def quality(whole: Strategy, said: Strategy) -> dict[str, Any]:
    """Translate `resource-qos-config`, as `burst`."""
    own = {**_memory(whole, said), **_identity(whole, said), **_resctrl(whole, said), **_disks(whole, said)}
    return {"qrm": own} if own else {}


def _memory(whole: Strategy, said: Strategy) -> dict[str, Any]:
    on = _switched_on(whole, "memoryQOS")
    if not on:
        return {"memory_qos": {"enabled": False}} if _spoken_of(said, "memoryQOS") else {}
    classes: dict[str, Any] = {}
    for name, qos in CLASSES.items():
        values = on.get(name, {})
        own = {ours: values[theirs] for theirs, ours in MEMORY_SETTINGS.items() if values.get(theirs) is not None}
        classes[qos] = own if name in on else {**NO_MEMORY_QOS}
    return {"memory_qos": {"enabled": True, **classes}}


def _identity(whole: Strategy, said: Strategy) -> dict[str, Any]:
    policy = (whole.get("policies") or {}).get("cpuPolicy", "groupIdentity")
    on = _switched_on(whole, "cpuQOS") if policy == "groupIdentity" else {}
    if not on:
        return {"group_identity": {"enabled": False}} if _spoken_of(said, "cpuQOS") else {}
    identities = {qos: on.get(name, {}).get("groupIdentity", 0) for name, qos in CLASSES.items()}
    return {"group_identity": {"enabled": True, **identities}}


def _resctrl(whole: Strategy, said: Strategy) -> dict[str, Any]:
    on = _switched_on(whole, "resctrlQOS")
    if not on:
        return {"resctrl": {"enabled": False}} if _spoken_of(said, "resctrlQOS") else {}
    classes: dict[str, Any] = {}
    for name, qos in CLASSES.items():
        if qos != "system_cores":
            values = {ours: on.get(name, {}).get(theirs) for theirs, ours in RESCTRL_SETTINGS.items()}
            classes[qos] = {**WHOLE_CACHE, **{ours: value for ours, value in values.items() if value}}
    return {"resctrl": {"enabled": True, **classes}}


def unbounded_operations(limits: Strategy) -> dict[str, int]:
    """Of `ioCfg` the operations by second that are more than a kernel counts."""
    return {field: limits[field] for field in OPERATIONS if (limits.get(field) or 0) >= UNBOUNDED_IOPS}


def followed_disks(blkio: Strategy) -> Strategy:
    """Of `blkioQOS` of best-effort pods what nodes follow: the first disks that are named by their device."""
    disks: dict[str, Strategy] = {}
    for block in blkio.get("blocks") or ():
        name, limits = str(block.get("name")), block.get("ioCfg") or {}
        if block.get("type") == "device" and _DISK.match(name) and len(disks) < MOST_DISKS:
            large = unbounded_operations(limits)
            own = {one: limits[one] for one in DISK_SETTINGS if limits.get(one) is not None and one not in large}
            disks.setdefault(name, {"name": name, "type": "device", "ioCfg": own})
    if blkio.get("enable") is False:
        return {"enable": False}
    switch = {"enable": True} if blkio.get("enable") else {}
    return {**switch, "blocks": list(disks.values())} if disks else {}


def _disks(whole: Strategy, said: Strategy) -> dict[str, Any]:
    followed = followed_disks((whole.get("beClass") or {}).get("blkioQOS") or {})
    if followed.get("enable"):
        disks = [
            {"device": block["name"].removeprefix("/dev/")}
            | {DISK_SETTINGS[field]: value for field, value in block["ioCfg"].items()}
            for block in followed["blocks"]
        ]
        return {"block_io": {"enabled": True, "reclaimed_cores": disks}}
    spoken = "enable" in ((said.get("beClass") or {}).get("blkioQOS") or {})
    return {"block_io": {"enabled": False}} if spoken and followed else {}


def _switched_on(strategy: Strategy, part: str) -> dict[str, Strategy]:
    """One part of every class in which it is on."""
    found = {name: (strategy.get(name) or {}).get(part) or {} for name in CLASSES}
    return {name: values for name, values in found.items() if values.get("enable")}


def _spoken_of(said: Strategy, part: str) -> bool:
    """Return whether the ConfigMap itself switches a part on or off."""
    return any("enable" in ((said.get(name) or {}).get(part) or {}) for name in CLASSES)
