"""A cgroup tree of plain files, v1 or v2, where unit tests need no kernel. Written sets are granted at once."""

import os
from pathlib import Path

from shared.adapters.host.cgroup import V1_CONTROLLERS, Cgroups
from shared.core.cgroups.knobs import Version
from shared.core.cgroups.layout import QOS_CLASSES, ROOT, class_group

_V1 = {
    "cpuset": {},
    "cpu": {
        "cpu.shares": "1024",
        "cpu.idle": "0",
        "cpu.cfs_quota_us": "-1",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_burst_us": "0",
    },
    "cpuacct": {},
    "memory": {
        "memory.limit_in_bytes": "9223372036854771712",
        "memory.usage_in_bytes": "0",
        "memory.stat": "cache 0\ntotal_inactive_file 0",
    },
}
_V2 = {
    "cpu.weight": "100",
    "cpu.idle": "0",
    "cpu.max": "max 100000",
    "cpu.max.burst": "0",
    "memory.max": "max",
    "memory.high": "max",
    "memory.min": "0",
    "memory.low": "0",
    "memory.current": "0",
    "memory.stat": "anon 0\ninactive_file 0",
}


class PlainCgroups:
    """The tree below a host root; `add` does what mkdir does in a kernel."""

    def __init__(self, host_root: Path, *, cpus: str = "0-47", mems: str = "0-1", version: Version = 1) -> None:
        self.version: Version = version
        self._cpus, self._mems = cpus, mems
        self._base = host_root / "sys/fs/cgroup"
        self._base.mkdir(parents=True)
        if version == 2:
            (self._base / "cgroup.controllers").write_text("cpuset cpu memory\n")
            (self._base / "cgroup.subtree_control").write_text("cpuset cpu memory\n")
        self.add("")
        self.cgroups = Cgroups(host_root)

    def add_classes(self, top: str = ROOT) -> None:
        self.add(top)
        for qos in QOS_CLASSES:
            self.add(class_group(qos, top))

    def folder(self, group: str, controller: str) -> Path:
        return self._base / (controller if self.version == 1 else "") / group

    def add(self, group: str) -> None:
        for controller in V1_CONTROLLERS if self.version == 1 else ("",):
            folder = self.folder(group, controller)
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in (_V1[controller] if self.version == 1 else _V2).items():
                (folder / name).write_text(f"{text}\n")
        cpuset = self.folder(group, "cpuset")
        effective = ("effective_cpus", "effective_mems") if self.version == 1 else ("cpus.effective", "mems.effective")
        for own, granted, whole in (("cpus", effective[0], self._cpus), ("mems", effective[1], self._mems)):
            (cpuset / f"cpuset.{own}").write_text(f"{whole}\n")
            os.link(cpuset / f"cpuset.{own}", cpuset / f"cpuset.{granted}")

    def set(self, group: str, name: str, text: str, controller: str = "cpuset") -> None:
        """Change a file as the kernel, or somebody else, would."""
        (self.folder(group, controller) / name).write_text(f"{text}\n")

    def get(self, group: str, name: str = "cpuset.cpus", controller: str = "cpuset") -> str:
        return (self.folder(group, controller) / name).read_text().strip()
