"""`FakeResctrl` is resctrl in memory: its groups, and what the kernel takes and refuses, by its own document."""

import errno
import os
from collections.abc import Mapping

from services.qrm.core.resctrl.hardware import Hardware, read_hardware
from services.qrm.core.resctrl.rates import ByteCounter, read_counter
from services.qrm.core.resctrl.schemata import Schemata, read_schemata
from services.qrm.core.resctrl.shares import PREFIX

WHOLE = "    L3:0=7ff;1=7ff\n    MB:0=100;1=100\n"
INFO = {
    "L3/cbm_mask": "7ff",
    "L3/min_cbm_bits": "2",
    "L3/num_closids": "16",
    "MB/bandwidth_gran": "10",
    "MB/min_bandwidth": "10",
    "MB/num_closids": "8",
    "L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes",
}
ENDED = 4_194_303
"""A task that is not there any more."""


class FakeResctrl:
    """A machine with two sockets, eleven ways each, and bandwidth in steps of ten percent, unless told otherwise."""

    def __init__(self, whole: str = WHOLE, info: Mapping[str, str] = INFO, cpuinfo: str = "") -> None:
        self.whole, self.info, self.cpuinfo, self.status = whole, dict(info), cpuinfo, "ok"
        self.texts: dict[str, dict[str, str]] = {"": self._lines(whole)}
        self.members: dict[str, set[int]] = {"": set()}
        self.written: list[tuple[str, str]] = []
        self.counts: dict[str, dict[int, tuple[str, str]]] = {}
        """What `mbm_local_bytes` and `mbm_total_bytes` say, by group and L3 cache."""

    def hardware(self) -> Hardware | None:
        return read_hardware(read_schemata(self.text("")), self.info, self.cpuinfo)

    def taken(self) -> int:
        return len(self.texts)

    def groups(self) -> list[str]:
        return sorted(name for name in self.texts if name.startswith(PREFIX))

    def make(self, group: str) -> None:
        if group in self.texts:
            raise self._error(errno.EEXIST)
        closids = [int(text) for name, text in self.info.items() if name.endswith("num_closids") and text.isdigit()]
        if closids and len(self.texts) >= min(closids):
            raise self._error(errno.ENOSPC, "Out of CLOSIDs")
        self.texts[group], self.members[group] = self._lines(self.whole), set()

    def remove(self, group: str) -> None:
        self._group(group)
        self.members[""] |= self.members.pop(group)
        del self.texts[group]

    def schemata(self, group: str) -> Schemata | None:
        return read_schemata(self.text(group)) if group in self.texts else None

    def text(self, group: str) -> str:
        return "".join(f"    {name}:{values}\n" for name, values in self.texts[group].items())

    def counters(self, group: str) -> dict[int, ByteCounter]:
        found = {l3: read_counter(*texts) for l3, texts in self.counts.get(group, {}).items()}
        return {l3: counter for l3, counter in found.items() if counter is not None}

    def write(self, group: str, line: str) -> None:
        self._group(group)
        name, _, rest = line.partition(":")
        if name not in self.texts[group]:
            raise self._error(errno.EINVAL, f"Unknown or unsupported resource name '{name}'")
        there = dict(pair.split("=") for pair in self.texts[group][name].split(";"))
        for pair in filter(None, rest.split(";")):
            domain, _, value = pair.partition("=")
            if domain not in there:
                raise self._error(errno.EINVAL, "Unknown or unsupported domain")
            there[domain] = self._mask(value) if name.startswith("L3") else self._width(value)
        self.texts[group][name] = ";".join(f"{domain}={value}" for domain, value in there.items())
        self.written.append((group, line))

    def last_status(self) -> str:
        return "" if self.status == "ok" else self.status

    def tasks(self, group: str) -> frozenset[int]:
        return frozenset(self.members.get(group, ()))

    def add_task(self, group: str, task: int) -> None:
        self._group(group)
        if task != ENDED:
            for members in self.members.values():
                members.discard(task)
            self.members[group].add(task)

    def _mask(self, text: str) -> str:
        mask = int(text, 16)
        if mask & ~int(self.info["L3/cbm_mask"], 16):
            raise self._error(errno.EINVAL, "Mask out of range")
        if "1" in f"{mask:b}".strip("0").replace("1", "", 1) and "0" in f"{mask:b}".strip("0"):
            raise self._error(errno.EINVAL, f"The mask {mask:x} has non-consecutive 1-bits")
        if mask.bit_count() < int(self.info["L3/min_cbm_bits"]):
            raise self._error(errno.EINVAL, "Need at least more bits in the mask")
        return f"{mask:x}"

    def _width(self, text: str) -> str:
        width, step = int(text), int(self.info["MB/bandwidth_gran"])
        if not int(self.info["MB/min_bandwidth"]) <= width <= max(read_schemata(self.whole)["MB"].values()):
            raise self._error(errno.EINVAL, f"MB value {width} out of range")
        return str(-(-width // step) * step)

    def _group(self, group: str) -> None:
        self.status = "ok"
        if group not in self.texts:
            raise self._error(errno.ENOENT)

    def _error(self, number: int, status: str = "ok") -> OSError:
        self.status = status
        return OSError(number, os.strerror(number))

    @staticmethod
    def _lines(text: str) -> dict[str, str]:
        return {name: rest for name, _, rest in (line.strip().partition(":") for line in text.splitlines())}
